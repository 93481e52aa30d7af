"""A run over sites, from a TOML file: every key known and checked before anybody is waited for."""

from __future__ import annotations

import tomllib
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import msgspec

from collabtop.arms.base import Arms
from collabtop.errors import CollabtopError, FileError, InputError, reason
from collabtop.events import OnEvent
from collabtop.runs.identification import identify
from collabtop.runs.result import Result
from collabtop.teams.sites.team import RemoteArms, SitesTeam, check_timeouts, roster

OnLost = Literal["fail", "go-on"]


class SiteEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A site with several agents."""

    name: str
    agents: int = 1


class RunSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `collabtop coordinate` is told in run.toml."""

    m: int
    """How many of the best arms are wanted."""
    sites: list[str | SiteEntry]
    """Names of the sites, in the order of the agents; {name = "...", agents = 2} for several agents."""
    arms: int | None = None
    """How many arms there are; or `labels`."""
    labels: list[str] | None = None
    differ: bool = False
    """Whether the arms differ from site to site (non-IID)."""
    horizon: int | None = None
    confidence: float | None = None
    tolerance: float = 0.0
    max_horizon: int | None = None
    algorithm: str = "auto"
    options: dict[str, Any] = {}
    seed: int | None = None
    wait: float | None = None
    """Seconds until all sites must be there; left out, as long as it takes."""
    grace: float = 60.0
    """Seconds that a site may be gone later on."""
    answer_within: float | None = None
    """Seconds that a site may take for an answer; left out, as long as it takes."""
    on_lost: OnLost = "fail"
    """What becomes of the run when a site is gone for good."""
    keepalive: float = 10.0

    def roster(self) -> list[str | tuple[str, int]]:
        """The sites as a team wants them."""
        return [it if isinstance(it, str) else (it.name, it.agents) for it in self.sites]

    def remote_arms(self, agents: int) -> Arms:
        """The arms, as far as a coordinator knows them."""
        if (self.arms is None) == (self.labels is None):
            raise InputError("give exactly one of arms (how many there are) and labels (what they are called)")
        n = len(self.labels) if self.labels is not None else self.arms
        assert n is not None
        return RemoteArms(n, labels=self.labels, agents=agents if self.differ else None)


def read_run(path: str | PathLike[str]) -> RunSettings:
    r"""Read a run from a TOML file; unknown keys and wrong values are named.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.toml"
    >>> _ = path.write_text('m = 1\narms = 3\nhorizon = 300\nsites = ["north", "south"]')
    >>> read_run(path).sites
    ['north', 'south']
    """
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        settings = msgspec.convert(table, RunSettings)
        roster(settings.roster())
        check_timeouts(settings.wait, settings.grace, settings.answer_within, settings.keepalive, settings.on_lost)
    except OSError as error:
        raise FileError(f"{path}: {reason(error)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: not TOML: {error}") from None
    except msgspec.ValidationError as error:
        known = ", ".join(field.name for field in msgspec.structs.fields(RunSettings))
        hint = f" (known are {known})" if "unknown field" in str(error) else ""
        raise FileError(f"{path}: {error}{hint}") from None
    except CollabtopError as error:
        raise FileError(f"{path}: {error}") from None
    return settings


def coordinate(
    settings: RunSettings,
    *,
    listen: str,
    cert: str | PathLike[str],
    key: str | PathLike[str] | None = None,
    authority: str | PathLike[str] | None = None,
    log: str | PathLike[str] | None = None,
    on_site: OnEvent | None = None,
    on_event: OnEvent | None = None,
    progress: bool = False,
    watch: bool = False,
) -> Result:
    """Wait for the sites of a run, run it, and return the result; with a log, go on where an earlier one was."""
    team = SitesTeam(
        settings.roster(),
        listen=listen,
        cert=cert,
        key=key,
        authority=authority,
        wait=settings.wait,
        grace=settings.grace,
        answer_within=settings.answer_within,
        on_lost=settings.on_lost,
        keepalive=settings.keepalive,
        on_event=on_site,
    )
    agents = sum(count for _, count in roster(settings.roster()))
    return identify(
        settings.remote_arms(agents),
        settings.m,
        agents=agents,
        horizon=settings.horizon,
        confidence=settings.confidence,
        tolerance=settings.tolerance,
        max_horizon=settings.max_horizon,
        algorithm=settings.algorithm,
        options=settings.options,
        seed=settings.seed,
        team=team,
        checkpoint=log,
        on_event=on_event,
        progress=progress,
        watch=watch,
    )
