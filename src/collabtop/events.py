"""What happens in a run, as it happens: typed events for `identify(on_event=...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec


class Event(msgspec.Struct, frozen=True, tag=True):
    """Something that happened; its class says what."""


class RunStarted(Event, frozen=True, tag="RunStarted"):
    """The arguments are fine and the agents are ready."""

    algorithm: str
    n: int
    m: int
    agents: int
    horizon: int
    seed: int
    known_pulls: int
    """Pulls that a checkpoint holds already."""


class RoundBegan(Event, frozen=True, tag="RoundBegan"):
    """A round begins."""

    round: int
    phase: str
    live: int
    """Candidates still open, as far as the coordinator knows."""


class PullsMade(Event, frozen=True, tag="PullsMade"):
    """An agent made some pulls (or, resuming, took them from the checkpoint)."""

    agent: int
    pulls: int
    recalled: bool


class PullFailed(Event, frozen=True, tag="PullFailed"):
    """An attempt at a pull failed."""

    agent: int
    candidate: str
    attempt: int
    """0 for the first."""
    said: str
    """What it did: raised an exception, returned no reward, or took too long."""
    again: bool
    """Whether it is tried again."""


class Exchanged(Event, frozen=True, tag="Exchanged"):
    """All agents that were asked have answered. Figures are of the run so far."""

    number: int
    time: int
    pulls: int
    words: int
    bits: int


class Listening(Event, frozen=True, tag="Listening"):
    """A coordinator's port is open: sites can dial in."""

    address: str


class SiteChanged(Event, frozen=True, tag="SiteChanged"):
    """A remote site came, dropped off, came back, or is lost and the run goes on without it."""

    site: str
    state: Literal["here", "gone", "back", "lost"]
    missing: tuple[str, ...]
    """The sites that are not there now."""


class RunEnded(Event, frozen=True, tag="RunEnded"):
    """The answer is known."""

    top: tuple[int, ...]
    """The best m by number, best first."""
    time: int
    pulls: int
    words: int


OnEvent = Callable[[Event], None]
