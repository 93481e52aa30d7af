"""Typed events of a run, for `identify(on_event=...)`."""

from collections.abc import Callable
from typing import Literal

import msgspec


class Event(msgspec.Struct, frozen=True, tag=True):
    """The base of all events."""


class RunStarted(Event, frozen=True, tag="RunStarted"):
    """The arguments are valid and the agents are ready."""

    algorithm: str
    n: int
    m: int
    agents: int
    horizon: int
    seed: int
    known_pulls: int
    """Pulls that the checkpoint already holds."""


class RoundBegan(Event, frozen=True, tag="RoundBegan"):
    """A round begins."""

    round: int
    phase: str
    live: int
    """Candidates that are still open, as far as the coordinator knows."""


class PullsMade(Event, frozen=True, tag="PullsMade"):
    """An agent made pulls, or in a resumed run took them from the checkpoint."""

    agent: int
    pulls: int
    recalled: bool


class Score(msgspec.Struct, frozen=True):
    """What pulls of one candidate by one agent gave."""

    candidate: str
    """The label of the candidate (its number, if it has none)."""
    arm: int
    """The number of the candidate."""
    pulls: int
    """How many pulls: 1, unless pulls are fast."""
    reward: float | None
    """Their mean reward; None if all of them failed."""
    estimate: float | None
    """The mean of all rewards of the candidate so far."""
    cost: float | None
    """What these pulls cost; None for a run without a budget."""


class Scored(Event, frozen=True, tag="Scored"):
    """Rewards arrived: one score per candidate. Fast pulls of an agent are reported together.

    Not reported for pulls at remote sites, whose rewards stay there.
    """

    agent: int
    scores: tuple[Score, ...]
    recalled: bool
    """Whether the rewards were in the checkpoint already."""


class PullFailed(Event, frozen=True, tag="PullFailed"):
    """An attempt at a pull failed."""

    agent: int
    candidate: str
    attempt: int
    """0 for the first attempt."""
    error: str
    """What went wrong: it raised an exception, returned no reward, or took too long."""
    again: bool
    """Whether the pull is tried again."""
    number: int = 0
    """The number of the pull, counted per agent."""
    cost: float | None = None
    """What the attempt was charged, if it is known."""
    seconds: float = 0.0
    """How long it took."""


class Exchanged(Event, frozen=True, tag="Exchanged"):
    """All agents that were asked have answered; the numbers are totals of the run so far."""

    number: int
    time: int
    pulls: int
    words: int
    bits: int


class Listening(Event, frozen=True, tag="Listening"):
    """The coordinator's port is open: sites can connect."""

    address: str


class SiteChanged(Event, frozen=True, tag="SiteChanged"):
    """A remote site connected, disconnected, reconnected, or is lost and the run continues without it."""

    site: str
    state: Literal["here", "gone", "back", "lost"]
    missing: tuple[str, ...]
    """The sites that are not connected now."""


class RunEnded(Event, frozen=True, tag="RunEnded"):
    """The run is over."""

    top: tuple[int, ...]
    """The numbers of the best m arms, best first."""
    time: int
    pulls: int
    words: int
    complete: bool = True
    """False if the run was stopped before its end, so that `top` is the best answer known by then."""


OnEvent = Callable[[Event], None]
