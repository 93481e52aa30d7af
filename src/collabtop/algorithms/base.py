"""The base class of all algorithms."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.shared.top_up import ask_bill, spend_rest
from collabtop.arms import SimulatedArms
from collabtop.arms.draws import coordinator_rng
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import ProtocolError, SettingError
from collabtop.problem import Problem
from collabtop.protocol.extension import AgentExtension
from collabtop.protocol.messages import Flags, Message, Reals
from collabtop.protocol.setup import Setup


@dataclass(frozen=True)
class Algorithm(ABC):
    """An algorithm that finds the best m of n arms; its dataclass fields are its options.

    A subclass implements `run`, and `smallest_horizon` and `check` if the defaults do not fit.
    `collabtop.testing.check_algorithm` checks it.

    >>> import numpy as np, collabtop as ct
    >>> from dataclasses import dataclass
    >>> from collabtop.algorithms.shared.allocation import AllAgents
    >>> @dataclass(frozen=True)
    ... class OnePullEach(ct.Algorithm):
    ...     name = "one-pull-each"
    ...     def smallest_horizon(self, problem):
    ...         return problem.n
    ...     def run(self, coordinator, problem, rng):
    ...         board, arms = coordinator.scoreboard, np.arange(problem.n)
    ...         coordinator.begin_round("shared", live=problem.n)
    ...         board.add(arms, *AllAgents(coordinator).pull(arms, times=1, all_live=True))
    ...         board.accept(np.argsort(-board.means(arms))[:problem.m], round=0, phase="shared")
    >>> ct.identify(ct.BernoulliArms([1.0, 0.0, 0.0]), m=1, agents=2, horizon=3, algorithm=OnePullEach()).top
    [0]
    """

    name: ClassVar[str]
    """The name of the algorithm in results."""
    summary: ClassVar[str] = ""
    """What it does, in one line, for `collabtop algorithms`."""
    iid_only: ClassVar[bool] = False
    """Whether it relies on all agents seeing the same distributions."""
    stops_early: ClassVar[bool] = False
    """Whether it stops as soon as the answer has its option `confidence`; the horizon is then only a limit."""
    needs_bounds: ClassVar[bool] = False
    """Whether it relies on rewards within bounds, such as for intervals that hold with a given probability."""
    tops_up: ClassVar[bool] = True
    """Whether what its plan leaves of a budget is spent in top-up rounds. They need a coordinator that knows how often
    both sides of the border were pulled, and agents that are all trusted."""
    fixed_schedule: ClassVar[bool] = False
    """Whether the number of arms and pulls in each request follows from the problem alone, not from rewards, as long as
    no agent is lost. Then a remote site with a policy can compare each request with the plan."""
    messages: ClassVar[tuple[type[Message], ...]] = ()
    """The kinds of messages that it sends to agents; needed if the schedule is not fixed, for sites with a policy."""
    private: ClassVar[bool] = False
    """Whether it can run with differential privacy: its schedule is fixed, agents answer `Pull` and `Prune` only, and
    means outside of the bounds do no harm."""
    simulation_work: ClassVar[float] = 1.0
    """How many times as long `simulate` takes as that of most algorithms; a plan makes fewer runs accordingly."""
    survives_loss: ClassVar[bool] = False
    """Whether it can continue when agents are lost for good during a run."""
    extension: ClassVar[type[AgentExtension] | None] = None
    """What its agents do with messages of its own, if it has any; a registered class."""

    @abstractmethod
    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Accept the best `problem.m` arms (0 < m <= n / 2) on the scoreboard; all randomness comes from `rng`."""

    def solve(self, coordinator: Coordinator, setup: Setup) -> None:
        """Run, reject the arms that are left, spend the rest of a budget, and check that m arms were accepted."""
        board, problem, rng = coordinator.scoreboard, setup.problem, coordinator_rng(setup.seed)
        if problem.m:  # with m = 0 (all arms wanted, mirrored) there is nothing to decide
            self.run(coordinator, problem, rng)
        board.reject_rest()
        if problem.m and setup.budget is not None:
            ask_bill(coordinator)
            if self.tops_up and not self.stops_early:
                spend_rest(coordinator, setup, rng)
        if board.accepted != problem.m:
            raise ProtocolError(f"{self.title} accepted {board.accepted} arms instead of {problem.m}")

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """The arms that many independent runs on Bernoulli arms would accept: one row per run, one flag per arm.

        Optional: studies of errors take it instead of `run`, and `check_algorithm` tests that both have the same
        distribution of answers. As in `run`, 0 < m <= n / 2. `means` has one mean per arm, or n x K if agents differ.
        `collabtop.extending.BatchedRuns` has what an implementation needs.
        """
        raise SettingError(f"{self.title} has no batched simulation, so only its messages can be simulated")

    @property
    def batched(self) -> bool:
        """Whether it implements `simulate`."""
        return type(self).simulate is not Algorithm.simulate

    def answers(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """The answers of many independent runs, for any m: `simulate` on the mirrored problem if need be."""
        inner = problem.inner
        accepted = np.zeros((runs, problem.n), np.bool_)
        if inner.m:
            accepted = self.simulate(inner, 1 - means if problem.mirrored else means, runs, rng)
        if accepted.shape != (runs, problem.n) or (accepted.sum(axis=1) != inner.m).any():
            raise ProtocolError(
                f"{self.title} did not accept exactly {inner.m} of {problem.n} arms in each of {runs} runs"
            )
        return ~accepted if problem.mirrored else accepted

    def smallest_horizon(self, problem: Problem) -> int:
        """The smallest horizon that suffices for these n, m and agents in every run."""
        return 1

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """The most expensive run: the number of open arms and the new pulls of each of them, round by round.

        It is used to convert a budget to a horizon. By default, all pulls go to one arm.
        """
        return [(1, problem.horizon * problem.agents)]

    def most_words(self, problem: Problem) -> int | None:
        """The most words that a run without lost agents can take; None if no bound is proved.

        It holds at any horizon, or, for an algorithm that stops early, if `problem.horizon` is the limit.
        """
        return None

    def most_round_trips(self, problem: Problem) -> int | None:
        """The most round trips that a run without lost agents can take; None if no bound is proved.

        It holds at any horizon, or, for an algorithm that stops early, if `problem.horizon` is the limit.
        """
        return None

    def error_bound(self, means: ArrayLike, problem: Problem) -> float | None:
        """The proven bound on the probability of a wrong answer at `problem.horizon`; None if no bound is proved."""
        return None

    def values(self, arms: SimulatedArms) -> Reals:
        """What it takes as the value of each arm: the average of its means over the agents."""
        return arms.values

    def check(self, problem: Problem) -> None:  # noqa: B027  (most algorithms take all problems)
        """Raise `SettingError` if the algorithm does not support this number of arms or agents, or this m."""

    @property
    def title(self) -> str:
        """The name in results; some options change it, such as `balanced` of `kzz`."""
        return self.name

    @property
    def options(self) -> dict[str, Any]:
        """The options and their values."""
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in asdict(self).items()}
