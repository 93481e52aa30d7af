"""What can be pulled: the contract that all arms keep."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from collabtop.arms.draws import Draws
from collabtop.errors import InputError

if TYPE_CHECKING:
    from collabtop.arms.calls import Try

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

FailureMode = Literal["", "raise", "zero", "skip"]
"""What happens to a pull that fails for good; "" for arms whose pulls cannot fail."""


class Recorder(Protocol):
    """Receives rewards as they are drawn, and returns those that an earlier process drew."""

    def pull_sums(self, source: Arms, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Pull arms that return sums, or return the recorded sums."""

    def recall(self, call: Try, most: int) -> Reals:
        """The recorded rewards from this pull on, at most so many (NaN: the pull failed)."""

    def keep(self, call: Try, rewards: Reals) -> None:
        """Record the rewards of the pulls just made (NaN: the pull failed)."""

    def flush(self, agent: int) -> None:
        """Write what an agent drew and was not written yet."""

    def note_failure(self, call: Try, label: str, what: str, *, again: bool) -> None:
        """Record an attempt that failed."""


class NoRecorder:
    """A recorder that records nothing."""

    def pull_sums(self, source: Arms, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Pull."""
        return source.pull(arms, times, draws)

    def recall(self, call: Try, most: int) -> Reals:
        """No rewards are recorded."""
        return np.empty(0)

    def keep(self, call: Try, rewards: Reals) -> None:
        """Do nothing."""

    def flush(self, agent: int) -> None:
        """Do nothing."""

    def note_failure(self, call: Try, label: str, what: str, *, again: bool) -> None:
        """Do nothing."""


class Arms(ABC):
    """n things to try; each try gives a reward in [0, 1].

    A subclass writes one method, `pull`. `collabtop.testing.check_arms` tells whether it keeps the
    contract.

    >>> import collabtop as ct
    >>> class Coins(ct.Arms):
    ...     def pull(self, arms, times, draws):
    ...         return draws.bulk.binomial(times, 0.5).astype(float)
    >>> Coins(n=3).n
    3
    """

    repeatable: ClassVar[bool] = False
    """Whether pulls cost nothing and the same draws give the same rewards: a resumed run then pulls again."""
    takes_pull: ClassVar[bool] = False
    """Whether the arms are candidates with a function `pull`, so that `resume` can make them from a checkpoint."""
    failure_mode: FailureMode = ""
    """What happens to a pull that fails for good; "" if pulls cannot fail."""
    candidates: Sequence[Any] | None = None
    """The candidates themselves, where the arms have any."""
    values: Reals | None = None
    """The true value of each arm (its mean, averaged over agents), where it is known: for simulated arms."""

    def __init__(self, n: int, *, labels: Sequence[str] | None = None, agents: int | None = None) -> None:
        if n < 1:
            raise InputError(f"n is {n}, but at least 1 arm is needed")
        if agents is not None and agents < 1:
            raise InputError(f"agents is {agents}, but arms that differ from agent to agent are for at least 1")
        self.n = n
        """Number of arms (the paper's n)."""
        self.labels = _checked_labels(labels, n)
        """Names of the arms, or None: results speak in them."""
        self.agents = agents
        """How many agents these arms are for: None means any number, all alike (IID)."""

    @abstractmethod
    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Pull each of `arms` (all different) `times` times for the agent of `draws`; return a sum each.

        `times` is as long as `arms`, or one number for all of them. All chance comes from `draws`.
        """

    def pull_recorded(self, arms: Ints, times: Ints, draws: Draws, recorder: Recorder) -> Reals:
        """Pull as `pull` does, and let `recorder` keep what is drawn; recorded pulls are not made again."""
        return recorder.pull_sums(self, arms, times, draws)

    def use_pickler(self, dumps: Callable[[Any], bytes]) -> None:  # noqa: B027
        """Pickle the user's function with `dumps` where a separate process makes the pulls."""

    def open(self) -> None:  # noqa: B027  (most arms have nothing to get ready)
        """Get ready to be pulled; called before every run."""

    def close(self) -> None:  # noqa: B027
        """Let go of what pulling took; called after every run, also after one that failed."""

    @property
    def iid(self) -> bool:
        """Whether every agent sees the same distributions."""
        return self.agents is None

    def identity(self) -> list[Any]:
        """What makes these arms these and no others, as plain data: a checkpoint is for arms with one identity."""
        return [type(self).__name__, self.n, self.agents, self.labels]

    def fingerprint(self) -> str:
        """A short hash that identifies these arms.

        >>> import collabtop as ct
        >>> ct.BernoulliArms([0.9, 0.5]).fingerprint() == ct.BernoulliArms([0.9, 0.5]).fingerprint()
        True
        """
        return hashlib.sha256(msgspec.msgpack.encode(self.identity())).hexdigest()[:16]

    def label(self, arm: int) -> str:
        """What to call an arm when speaking to a person."""
        return self.labels[arm] if self.labels is not None else str(arm)

    def __len__(self) -> int:
        return self.n


def _checked_labels(labels: Sequence[str] | None, n: int) -> tuple[str, ...] | None:
    if labels is None:
        return None
    if isinstance(labels, str):
        raise InputError(f"labels is one string, {labels!r}, but a list of {n} labels is needed")
    if len(labels) != n:
        raise InputError(f"labels has {len(labels)} entries, but there are {n} arms")
    return tuple(str(label) for label in labels)
