"""The result of a run: the answer, what was learnt, and what it cost."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collabtop.arms.base import Ints, Reals
from collabtop.arms.tables import Library
from collabtop.coordination.coordinator import Outcome
from collabtop.privacy import NoiseScale
from collabtop.runlog.format import Header
from collabtop.runlog.totals import Totals
from collabtop.runs.budget import Spending
from collabtop.runs.evidence import Comparisons, Seen, Standing, intervals, shown_ends, standings
from collabtop.runs.observed import Observed
from collabtop.runs.printing import EVIDENCE, interval_text, plain_text, printable
from collabtop.runs.warnings import horizon_warnings
from collabtop.validation import counted

# Imported when a table or a plot is asked for: Matplotlib takes a while to load.
if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from collabtop.display.result_table import ResultTable


class Reuse(msgspec.Struct, frozen=True):
    """What an extended run did with the pulls of the shorter runs before it."""

    earlier: int
    """Pulls that were made before, in all."""
    reused: int
    """Those of them that the longer run used as its own."""
    unused: dict[str, int]
    """The others, by candidate: a run planned for this horizon from the start would not have made them."""

    def __str__(self) -> str:
        if not self.unused:
            return f"all {self.earlier:,} earlier pulls were used, as if the run had been planned for this horizon"
        most = max(self.unused, key=lambda label: self.unused[label])
        return (
            f"{self.reused:,} of {self.earlier:,} earlier pulls were used; a run planned for this horizon from the "
            f"start would not have made the other {self.earlier - self.reused:,}: they were of {len(self.unused):,} "
            f"candidates ({self.unused[most]:,} of {most})"
        )


class Result:
    """The best m arms, what the coordinator learnt on the way, and what it cost.

    Two results are equal if they agree in everything that does not depend on where the agents ran, or on how much of
    an extended run was known before.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1], labels=["a", "b", "c"])
    >>> result = ct.identify(arms, m=1, agents=2, horizon=300, algorithm="uniform", seed=7)
    >>> result.top, result.time, result.words
    (['a'], 300, 6)
    """

    def __init__(
        self,
        header: Header,
        outcome: Outcome,
        *,
        observe: Callable[[], Observed | None],
        failures: Mapping[str, int],
        totals: Totals | None = None,
        spending: Spending | None = None,
        complete: bool = True,
        reuse: Reuse | None = None,
        candidates: Sequence[Any] | None = None,
        library: Library | None = None,
    ) -> None:
        self.name = header.name
        """The name of the run, if it was given one."""
        self.algorithm = header.algorithm
        """The name of the algorithm that ran."""
        self.options = header.options
        self.why = header.why
        """Why this algorithm was used."""
        self.n = header.n
        self.m = header.m
        self.agents = header.agents
        self.horizon = header.horizon
        self.seed = header.seed
        """The seed that repeats this run."""
        self.confidence = header.confidence
        """The probability with which the answer was to be right; None for a run to a horizon."""
        self.unit = header.unit
        """The direction and bounds of the rewards."""
        self._problem, self._notes = header.problem, header.notes
        self.labels = header.labels
        self.estimates = outcome.estimates
        """What the coordinator learnt about each arm."""
        self.rounds = outcome.rounds
        """What each round cost."""
        self.ledger = outcome.ledger
        """Words and bits by kind of message, direction and round."""
        self.lost = outcome.lost
        """Agents that were lost for good, if the run continued without them."""
        self.suspects = list(outcome.suspects) if header.iid and header.bounds is not None else []
        """Agents whose answers do not fit those of the others (`robust=`, and arms that are the same for all)."""
        self._local_tops = outcome.local_tops
        self.failures = dict(failures)
        """Pulls that failed for good, by candidate: each counts as the worst reward, or is skipped (`PullPolicy`)."""
        self.totals = totals or Totals()
        """What all calls took together: cost, failures, retries and latency, over all processes of the run."""
        self.spending = spending
        """What the run was allowed to cost and did, if it had a budget."""
        self.complete = complete
        """False if the run was stopped, interrupted or looked at before its end: then `top` is the best answer known
        by that time, and `open` lists the arms that are not settled."""
        self.reuse = reuse
        """What became of the earlier pulls, if the run was extended. `pulls` and `time` count those that were used."""
        self._observe = observe
        self._candidates, self._library = candidates, library
        scale = None if header.privacy is None else NoiseScale.of(header.privacy, header.n, header.horizon)
        self.privacy = None if header.privacy is None or scale is None else scale.spent(header.privacy)
        """The differential privacy that the run spent, if it had any."""

    @cached_property
    def top_indices(self) -> list[int]:
        """The best m arms by number, best first.

        An arm that was settled inside an agent has no mean here. If such arms are in the answer (m > n / 2), they come
        first: they were never close to the border.
        """
        return self.estimates.top()

    @property
    def top(self) -> list[Any]:
        """The best m arms by label (by number if there are none), best first."""
        return [self.labels[arm] for arm in self.top_indices] if self.labels else list(self.top_indices)

    @property
    def best_candidates(self) -> list[Any]:
        """The best m candidates, best first: your own objects, or what `top` has if there are none.

        There are none for simulated arms, and in a log of candidates that are not plain data (`peek`).
        """
        candidates = self._candidates
        return self.top if candidates is None else [candidates[arm] for arm in self.top_indices]

    @property
    def best(self) -> Any:
        """The best candidate, the first of `best_candidates`.

        >>> import collabtop as ct
        >>> models = {"low": {"mean": 0.2}, "high": {"mean": 0.8}}
        >>> result = ct.identify(models, 1, pull=lambda model, rng: rng.random() < model["mean"], horizon=40, seed=1)
        >>> result.best, result.top
        ({'mean': 0.8}, ['high'])
        """
        return self.best_candidates[0]

    @property
    def local_top(self) -> list[list[Any]] | None:
        """The best m arms of each agent on its own, by label and in no order; None if the algorithm does not find them.

        Only `fed-elim` finds them.
        """
        if not self._local_tops:
            return None
        tops = [sorted(self._local_tops[agent].arms) for agent in sorted(self._local_tops)]
        return [[self.labels[arm] for arm in top] if self.labels else top for top in tops]

    @property
    def local_sure(self) -> list[bool] | None:
        """Whether each agent is sure of its `local_top`; None if the algorithm does not find them."""
        return [self._local_tops[agent].sure for agent in sorted(self._local_tops)] if self._local_tops else None

    @property
    def sure(self) -> bool | None:
        """Whether the answer has the confidence asked for; None for a run to a horizon."""
        return None if self.confidence is None else not self.estimates.guesses

    @property
    def open(self) -> list[Any]:
        """The arms (labels, if there are any) that were not settled: by a run with a confidence, or before its end."""
        arms = sorted(self.estimates.guesses)
        return [self.labels[arm] for arm in arms] if self.labels else arms

    @property
    def exact(self) -> list[Any]:
        """The arms (labels, if there are any) whose mean is exact, because they were scored on all examples."""
        all_pulls = 0 if self.privacy is not None else self._problem.population or 0  # noise makes no mean exact
        arms = [estimate.arm for estimate in self.estimates if estimate.pulls == all_pulls]
        return [self.labels[arm] for arm in arms] if self.labels else arms

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to doubt the answer: a horizon that was lowered, an early end, lost agents, arms not separated."""
        lines = horizon_warnings(
            self.estimates,
            self.horizon,
            self.labels,
            self.unit,
            sure=self.sure,
            problem=self._problem,
            seen=self._seen,
            complete=self.complete,
        )
        if self.suspects:
            lines = (self._suspects_warning(), *lines)
        if self.lost:
            lines = (self._loss_warning(), *lines)
        if not self.complete:
            lines = (self._early_end_warning(), *lines)
        return (*self._notes, *lines)

    def _early_end_warning(self) -> str:
        made = self.pulls if self.observed is None else max(self.pulls, int(self.observed.pulls.sum()))
        return (
            f"not complete: {made:,} of at most {self.agents * self.horizon:,} pulls are made, and "
            f"{len(self.estimates.guesses):,} of {self.n:,} arms are still open"
        )

    @cached_property
    def _seen(self) -> Seen | None:
        if self.observed is None:
            return None
        means = self.unit.internal(self.observed.means)
        variances = self.unit.internal_difference(self.observed.deviations) ** 2
        return Seen(self.observed.pulls, (variances + means**2) * self.observed.pulls, means)

    @cached_property
    def intervals(self) -> tuple[Reals, Reals]:
        """Lower and upper ends of the 95% intervals of all means, NaN where the coordinator does not know the pulls.

        Each contains its mean with probability .95, whatever decided how often the arm was pulled (docs: Intervals).
        """
        return self._intervals_of(None)

    def _intervals_of(self, arms: Ints | None) -> tuple[Reals, Reals]:
        failed = np.zeros(self.n, np.int64)
        for arm in range(self.n) if self.failures else ():
            failed[arm] = self.failures.get(self.labels[arm] if self.labels else str(arm), 0)
        return shown_ends(intervals(self.estimates.columns, self._problem, self._seen, failed, arms), self.unit)

    @cached_property
    def standings(self) -> list[Standing]:
        """The accepted candidates, best first: places, intervals, pulls, and which were accepted on thin evidence."""
        comparisons, confident = Comparisons(self.estimates, self._problem, self._seen), self.sure is not None
        ends = self._intervals_of(np.array(self.top_indices, np.int64))
        return standings(self.estimates, self.top_indices, *ends, comparisons, confident=confident)

    def _suspects_warning(self) -> str:
        numbers = ", ".join(map(str, self.suspects))
        return f"the answers of agent {numbers} do not fit those of the others, though all see the same arms"

    def _loss_warning(self) -> str:
        numbers = ", ".join(map(str, self.lost))
        return (
            f"{len(self.lost)} of {self.agents} agents were lost for good (number {numbers}), and the run continued "
            "without them: the others pulled their arms, and averages over agents are over those that remained"
        )

    @property
    def retries(self) -> int:
        """Attempts that failed and were repeated."""
        return self.totals.retries

    @property
    def cost(self) -> float | None:
        """What all pulls were charged together, as far as they reported it with `Reward`; None if none did."""
        return self.totals.cost

    @property
    def time(self) -> int:
        """Time steps used: at most the horizon, and with a budget those of top-up rounds."""
        return sum(counted.time for counted in self.rounds)

    @property
    def pulls(self) -> int:
        """Pulls made by all agents."""
        return sum(counted.pulls for counted in self.rounds)

    @property
    def words(self) -> int:
        """Numbers sent in either direction."""
        return self.ledger.words

    @property
    def bits(self) -> int:
        """The same in bits."""
        return self.ledger.bits

    @property
    def round_trips(self) -> int:
        """Times the coordinator had to wait for replies."""
        return self.ledger.round_trips

    @property
    def pulls_by_arm(self) -> list[int | None]:
        """Pulls of each arm; None if the coordinator does not know them."""
        return self.estimates.pulls_by_arm()

    @cached_property
    def observed(self) -> Observed | None:
        """Everything the agents saw, or None on a team that does not share memory with them."""
        return self._observe()

    def table(self) -> ResultTable:
        """All candidates: verdict, when settled, and mean, pulls and 95% interval where known."""
        from collabtop.display.result_table import ResultTable

        return ResultTable(self)

    def plot(self) -> Figure:
        """Candidates settled over rounds, estimates with intervals, words by round: a Matplotlib figure."""
        from collabtop.display.result_figure import result_figure

        return result_figure(self)

    def to_dataframe(self, library: Library | None = None) -> Any:
        """The table as a data frame.

        Args:
            library: `"pandas"` or `"polars"`; by default that of the data frame that was passed to the run, otherwise
                pandas if it is installed, and else polars.

        >>> import collabtop as ct
        >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1], labels=["a", "b", "c"])
        >>> ct.identify(arms, m=1, agents=2, horizon=300, seed=7).to_dataframe()["label"].to_list()
        ['a', 'b', 'c']
        """
        return self.table().to_dataframe(library or self._library)

    def _repr_html_(self) -> str:
        summary = f"{self._time_and_money()}, pulls {self.pulls:,}, words {self.words:,}, {self._source}"
        cost = "" if self.totals.cost is None else f"cost {self.totals.cost:,.6g}, "
        lines = "".join(f"<li>{html.escape(printable(line, markup=False))}</li>" for line in self.warnings)
        warnings = f"<p><b>Warnings</b></p><ul>{lines}</ul>" if lines else ""
        title = f"The best {self.m} of {self.n:,} by {html.escape(self.algorithm)}: {cost}{summary}"
        return f"<p>{title}</p>{warnings}{self.table()._repr_html_()}"

    def _time_and_money(self) -> str:
        """What limited the run: the horizon, or a budget, which top-up rounds spend after the horizon."""
        if self.spending is None or self.spending.spent is None:
            return f"time {self.time:,} of {self.horizon:,}"
        return f"spent {self.spending.spent:,.6g} of {self.spending.budget:,.6g}   time {self.time:,}"

    def to_dict(self) -> dict[str, Any]:
        """The result as plain Python objects."""
        return {
            **self._learnt(),
            "reuse": msgspec.to_builtins(self.reuse),
            "warnings": list(self.warnings),
            "answer": [
                {**msgspec.to_builtins(standing), "label": label, "mean": self.estimates[standing.arm].mean}
                for standing, label in zip(self.standings, self.top, strict=True)
            ],
        }

    def _learnt(self) -> dict[str, Any]:
        """What does not depend on where the agents ran: all but what is made of single rewards, if they were seen."""
        return {
            "name": self.name,
            "algorithm": self.algorithm,
            "options": self.options,
            "why": self.why,
            "n": self.n,
            "m": self.m,
            "agents": self.agents,
            "horizon": self.horizon,
            "seed": self.seed if self.privacy is None else None,  # it would tell the noise
            **({} if self.privacy is None else {"privacy": msgspec.to_builtins(self.privacy)}),
            "direction": self.unit.direction,
            "bounds": self.unit.bounds,
            "confidence": self.confidence,
            "sure": self.sure,
            "open": self.open,
            "complete": self.complete,
            "suspects": self.suspects,
            "top": self.top,
            "top_indices": self.top_indices,
            "time": self.time,
            "words": self.words,
            "bits": self.bits,
            "round_trips": self.round_trips,
            "pulls": self.pulls,
            "rounds": msgspec.to_builtins(self.rounds),
            "ledger": msgspec.to_builtins(self.ledger.entries),
            **({"local_top": self.local_top, "local_sure": self.local_sure} if self._local_tops else {}),
            "estimates": [
                {**msgspec.to_builtins(estimate), "label": self.labels[estimate.arm] if self.labels else None}
                for estimate in self.estimates
            ],
        }

    def to_json(self) -> str:
        """The result as JSON: the same for the same seed, whatever team ran it.

        Only on remote sites intervals may be longer: the coordinator there does not see how much rewards vary.
        """
        return msgspec.json.encode(self.to_dict()).decode()

    def __eq__(self, other: object) -> bool:
        return self._learnt() == other._learnt() if isinstance(other, Result) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kind = "Result" if self.complete else "Incomplete result"
        return f"<{kind} of {self.algorithm}: top {self.top!r:.60}, time {self.time:,}, words {self.words:,}>"

    def __str__(self) -> str:
        return plain_text(self, width=100)

    def __rich__(self) -> RenderableType:
        if not self.warnings:
            return self._table()
        return Group(
            self._table(),
            *(Text(printable(f"warning: {line}", markup=False), style="yellow") for line in self.warnings),
        )

    @property
    def _source(self) -> str:
        """The seed, or what is known instead of it about a private run, whose noise follows from the seed."""
        return f"seed {self.seed}" if self.privacy is None else str(self.privacy)

    def _table(self) -> Table:
        team = counted(self.agents, "agent")
        title = f"The best {self.m} of {self.n:,} arms by {self.algorithm}, {team}, {self._source}"
        if self.name is not None:
            title = f"{printable(self.name)}: {title[0].lower()}{title[1:]}"
        spent = f"{self._time_and_money()}   pulls {self.pulls:,}"
        sent = f"words {self.words:,}   bits {self.bits:,}   round trips {self.round_trips:,}"
        reuse = "" if self.reuse is None else f"\n{printable(str(self.reuse))}"
        width = max(len(title), len(spent), len(sent)) + 2
        table = Table(title=title, caption=f"{spent}\n{sent}{reuse}", min_width=width)
        for column in ("place", "arm", "mean", "95% interval", "pulls", "evidence"):
            table.add_column(column, justify="left" if column in ("arm", "evidence") else "right")
        for label, standing in zip(self.top, self.standings, strict=True):
            mean = self.estimates[standing.arm].mean
            table.add_row(
                standing.places,
                printable(str(label)),
                "-" if mean is None else self.unit.text(mean),
                interval_text(standing.low, standing.high, self.unit),
                "-" if standing.pulls is None else f"{standing.pulls:,}",
                EVIDENCE[standing.thin],
            )
        return table
