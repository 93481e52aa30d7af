"""The base classes of arms and of recorders."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from collabtop.arms.division import Division
from collabtop.arms.draws import Draws
from collabtop.arms.purse import Purse
from collabtop.arms.tables import Library
from collabtop.arms.unit import DEFAULT_UNIT, Unit
from collabtop.errors import InputError, SettingError
from collabtop.privacy import Privacy
from collabtop.problem import as_weights
from collabtop.validation import wrong_value

if TYPE_CHECKING:
    from collabtop.arms.calls import AttemptOutcome, PullAttempt
    from collabtop.arms.pool import CallOptions

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

Charge = Literal["reported", "seconds"]
"""What a pull costs: what it reports with `Reward`, or the seconds that it takes."""

FailureMode = Literal["", "raise", "zero", "skip"]
"""What happens to a pull that fails for good; "" for arms whose pulls cannot fail."""


PullTogether = Callable[[Ints, Division, Sequence[Draws]], Reals]
"""Pulls for several agents: the arms of each position of a division, the division, and the draws of each agent; returns
one sum per position."""


class Drawn(NamedTuple):
    """What consecutive pulls of one arm gave."""

    rewards: Reals
    """The rewards (NaN: the pull failed for good)."""
    costs: Reals | None = None
    """What each pull was charged, with its failed attempts (NaN: unknown); None if no cost is known."""
    notes: tuple[str | None, ...] = ()
    """A note per pull; empty if there is none."""
    seconds: float = 0.0
    """How long the calls took together."""
    waited: float = 0.0
    """How long they waited together for rate limits: those of the run, and those that the service asked for."""


NOTHING_DRAWN = Drawn(np.empty(0))


class Recorder:
    """Receives rewards as they are drawn, and returns those that an earlier process drew. This one records nothing."""

    purse: Purse | None = None
    """What the run may spend, if it has a budget and all its agents are in this process."""
    charged_before: Mapping[tuple[int, int], float] = MappingProxyType({})
    """What failed attempts of an earlier process cost, by agent and number of a pull that it did not complete."""

    @property
    def is_idle(self) -> bool:
        """Whether sums pass through it unseen and unchanged."""
        return True

    def pull_sums(self, source: Arms, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Pull arms that return sums, or return the recorded sums."""
        return source.pull(arms, times, draws)

    def recall(self, attempt: PullAttempt, limit: int) -> Drawn:
        """Return up to `limit` recorded pulls, starting at this one."""
        return NOTHING_DRAWN

    def recall_batch(self, agent: int, number: int, arms: Ints, times: Ints) -> Reals | None:
        """Return the rewards of `times[j]` pulls of `arms[j]`, from pull `number` of an agent on, if all are recorded.

        None if some are not, or failed, or have a cost.
        """
        return None

    def unrecorded(self, attempt: PullAttempt, limit: int) -> int:
        """Return how many of `limit` pulls, starting at this one, come before the next recorded one."""
        return limit

    def keep(self, attempt: PullAttempt, drawn: Drawn) -> None:
        """Record what the pulls just made gave."""

    def keep_reward(self, attempt: PullAttempt, reward: float, seconds: float) -> None:
        """Record a pull just made that took so long and gave a reward, without cost and note."""
        self.keep(attempt, Drawn(np.array([reward]), seconds=seconds))

    def flush(self, agent: int) -> None:
        """Add up and publish what an agent drew so far."""

    def note_failure(self, attempt: PullAttempt, label: str, outcome: AttemptOutcome, *, again: bool) -> None:
        """Record an attempt that failed."""


class Arms(ABC):
    """n arms to choose from; each pull of one returns a reward, in [0, 1] unless `unit` says otherwise.

    A subclass implements one method, `pull`. `collabtop.testing.check_arms` checks that it keeps the
    contract.

    >>> import collabtop as ct
    >>> class Coins(ct.Arms):
    ...     def pull(self, arms, times, draws):
    ...         return draws.bulk.binomial(times, 0.5).astype(float)
    >>> Coins(n=3).n
    3
    """

    repeatable: ClassVar[bool] = False
    """Whether pulls are free and the same draws give the same rewards, so that a resumed run may pull again."""
    takes_pull: ClassVar[bool] = False
    """Whether the arms are candidates with a function `pull`, so that `resume` can rebuild them from a checkpoint."""
    unit: Unit = DEFAULT_UNIT
    """The direction and bounds of the rewards. `pull` returns sums of internal values: `unit.internal(reward)`."""
    calls_function: ClassVar[bool] = False
    """Whether every pull calls a function of the user's, so that several may run at once."""
    paired: bool = False
    """Whether pull number t of every arm uses the same example, or the same random numbers."""
    pull_limit: int | None = None
    """The most pulls of an arm by all agents together; None: no limit. Unless `sample_size` is given, the mean over all
    of them is the arm's value."""
    sample_size: int | None = None
    """The number of distinct rewards of an arm, if they are a sample of what it would return: even the mean over all of
    them is an estimate. None: every pull tells something new, or all pulls together tell everything."""
    smallest_sample: int = 0
    """The arm with the fewest distinct rewards, if `sample_size` is given."""
    lowers_horizon: bool = False
    """Whether a horizon that needs more than `sample_size` rewards is lowered to the largest that does not, instead of
    being rejected."""
    failure_mode: FailureMode = ""
    """What happens to a pull that fails for good; "" if pulls cannot fail."""
    independent: bool = True
    """Whether each reward is drawn independently of earlier ones. Otherwise means over overlapping sets of rewards
    reveal single rewards, so sites reject such arms."""
    uses_examples_once: bool = False
    """Whether each reward is a score on an example, and no candidate is scored on the same example twice. Privacy can
    then protect whole examples."""
    candidates: Sequence[Any] | None = None
    """The candidates, if the arms have any."""
    library: Library | None = None
    """The library of the data frame that the candidates, examples or rewards were passed in, if it was one."""
    values: Reals | None = None
    """The true value of each arm (its mean, averaged over agents), if known: for simulated arms."""
    weights: tuple[float, ...] | None = None
    """How much each agent counts in the value of a non-IID arm, 1 on average; None: all count the same."""

    def __init__(
        self,
        n: int,
        *,
        labels: Sequence[str] | None = None,
        agents: int | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        if n < 1:
            raise wrong_value("n", n, "at least 1 arm is needed")
        if agents is not None and agents < 1:
            raise wrong_value("agents", agents, "non-IID arms need at least 1 agent")
        self.n = n
        """Number of arms (the paper's n)."""
        self.labels = _checked_labels(labels, n)
        """Names of the arms as shown in results, or None."""
        self.agents = agents
        """The number of agents that these (non-IID) arms are for, or None: any number (IID)."""
        self.weights = as_weights(weights, agents)

    @abstractmethod
    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Pull each of `arms` (all distinct) `times` times for the agent of `draws`, and return one sum per arm.

        `times` has one number per arm, or a single number for all of them. All randomness comes from `draws`. Paired
        arms find the number of each arm's next pull in `draws.next_pulls(arms)`. Arms that see single rewards set
        `draws.squares` to the sums of their squares, with which intervals are shorter where rewards vary little.
        """

    @property
    def pull_together(self) -> PullTogether | None:
        """A faster way to make the pulls of several agents at once, with the same sums, if there is one."""
        return None

    def pull_recorded(self, arms: Ints, times: Ints, draws: Draws, recorder: Recorder) -> Reals:
        """Pull like `pull`, but record the rewards in `recorder`; pulls that it already holds are not repeated."""
        sums = recorder.pull_sums(self, arms, times, draws)
        if draws.prices is not None:
            draws.charged += float(draws.prices[arms] @ np.broadcast_to(times, arms.shape))
        return sums

    def pull_limit_of(self, agent: int) -> int | None:
        """The most pulls of an arm by this agent, if agents have different (non-IID) examples; None: no limit."""
        return None

    @property
    def call_options(self) -> CallOptions:
        """How the user's function is called, if the arms call one."""
        from collabtop.arms.pool import CallOptions

        return CallOptions()

    def with_calls(self, **options: Any) -> Arms:
        """The same arms with other `CallOptions`; arms that call no function do not change."""
        return self

    def use_pickler(self, dumps: Callable[[Any], bytes]) -> None:  # noqa: B027
        """Use `dumps` to pickle the user's function for pulls in a separate process."""

    def open(self) -> None:  # noqa: B027  (most arms need no preparation)
        """Acquire what pulls need; called before every run."""

    def close(self) -> None:  # noqa: B027
        """Release it; called after every run, including one that failed."""

    def check_privacy(self, privacy: Privacy) -> None:
        """Raise `SettingError` if noise cannot protect the rewards of these arms."""
        if not self.unit.bounded:
            raise SettingError(
                "bounds is None, but privacy has to know how much one reward can change a sum: pass bounds=(low, high)",
                argument="bounds",
            )
        if self.failure_mode == "skip":
            raise SettingError(
                "failures is 'skip', so one reward can stand for several pulls, but privacy needs 'zero' or 'raise'",
                argument="policy",
            )
        if privacy.unit == "example" and not self.uses_examples_once:
            raise SettingError(
                f"unit is 'example', but {type(self).__name__} may use an example more than once for a candidate: use "
                "DatasetArms without replace and rng, or unit='reward'",
                argument="privacy",
            )

    @property
    def iid(self) -> bool:
        """Whether every agent sees the same distributions."""
        return self.agents is None

    def identity(self) -> list[Any]:
        """The data that distinguish these arms from others; a checkpoint only works with arms of the same identity."""
        unit = [] if self.unit.is_default else [self.unit.direction, self.unit.bounds]
        weights = [] if self.weights is None else ["weights", self.weights]
        return [type(self).__name__, self.n, self.agents, self.labels, *unit, *weights]

    def fingerprint(self) -> str:
        """A short hash that identifies these arms.

        >>> import collabtop as ct
        >>> ct.BernoulliArms([0.9, 0.5]).fingerprint() == ct.BernoulliArms([0.9, 0.5]).fingerprint()
        True
        """
        return hashlib.sha256(msgspec.msgpack.encode(self.identity())).hexdigest()[:16]

    def label(self, arm: int) -> str:
        """The name of an arm in messages and results."""
        return self.labels[arm] if self.labels is not None else str(arm)

    def __len__(self) -> int:
        return self.n


def _checked_labels(labels: Sequence[str] | None, n: int) -> tuple[str, ...] | None:
    if labels is None:
        return None
    if isinstance(labels, str):
        raise InputError(f"labels is one string, {labels!r}, but a list of {n} labels is needed", argument="labels")
    if len(labels) != n:
        raise InputError(f"labels has {len(labels)} entries, but there are {n} arms", argument="labels")
    return tuple(str(label) for label in labels)
