"""A run over sites, described by a TOML file. All keys are checked before the run starts."""

from os import PathLike
from typing import Any, Literal

import msgspec

from collabtop.arms.base import Arms
from collabtop.arms.unit import Direction
from collabtop.errors import CollabtopError, FileError, InputError, reason
from collabtop.events import OnEvent
from collabtop.privacy import Privacy
from collabtop.runs.identification import identify
from collabtop.runs.result import Result
from collabtop.teams.sites.team import RemoteArms, SitesTeam, check_timeouts, roster
from collabtop.text_files import read_toml

OnLost = Literal["fail", "go-on"]


class SiteEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A site and its number of agents."""

    name: str
    agents: int = 1


class RunSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of the file run.toml for `collabtop coordinate`."""

    m: int
    """How many arms to find."""
    sites: list[str | SiteEntry]
    """Names of the sites, in the order of the agents; {name = "...", agents = 2} for several agents."""
    arms: int | None = None
    """The number of arms, unless `labels` is given."""
    labels: list[str] | None = None
    heterogeneous: bool = False
    """Whether the arms differ between sites (non-IID)."""
    weights: list[float] | None = None
    """How much each agent counts in the value of an arm, if they differ; equally by default."""
    direction: Direction = "maximize"
    """Whether large or small rewards are better: "maximize" or "minimize"."""
    bounds: tuple[float, float] | Literal["none"] = (0.0, 1.0)
    """The smallest and the largest possible reward, or "none"."""
    horizon: int | None = None
    confidence: float | None = None
    tolerance: float = 0.0
    max_horizon: int | None = None
    robust: int = 0
    """How many of the agents may lie."""
    privacy: Privacy | None = None
    """The differential privacy of the run."""
    algorithm: str = "auto"
    options: dict[str, Any] = {}
    seed: int | None = None
    wait: float | None = None
    """Seconds within which all sites must connect; no limit by default."""
    grace: float = 60.0
    """Seconds that a site may be disconnected later on."""
    answer_within: float | None = None
    """Seconds that a connected site may take for an answer; no limit by default."""
    on_lost: OnLost = "fail"
    """What happens when a site is lost for good."""
    keepalive: float = 10.0

    def roster(self) -> list[str | tuple[str, int]]:
        """The sites in the form that `SitesTeam` takes."""
        return [entry if isinstance(entry, str) else (entry.name, entry.agents) for entry in self.sites]

    def chosen(self, *keys: str) -> dict[str, Any]:
        """The values of these keys."""
        return {key: getattr(self, key) for key in keys}

    @property
    def agents(self) -> int:
        """The number of agents at all sites."""
        return sum(count for _, count in roster(self.roster()))

    def remote_arms(self) -> Arms:
        """The arms of the run."""
        if (self.arms is None) == (self.labels is None):
            raise InputError("give exactly one of arms (their number) and labels (their names)")
        n = len(self.labels) if self.labels is not None else self.arms
        assert n is not None
        return RemoteArms(
            n,
            labels=self.labels,
            agents=self.agents if self.heterogeneous else None,
            weights=self.weights,
            direction=self.direction,
            bounds=None if self.bounds == "none" else self.bounds,
        )


def read_run(path: str | PathLike[str]) -> RunSettings:
    r"""Read a run from a TOML file; unknown keys and wrong values are rejected.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.toml"
    >>> _ = path.write_text('m = 1\narms = 3\nhorizon = 300\nsites = ["north", "south"]')
    >>> read_run(path).sites
    ['north', 'south']
    """
    try:
        table = read_toml(path)
        settings = msgspec.convert(table, RunSettings)
        roster(settings.roster())
        settings.remote_arms()
        check_timeouts(settings.wait, settings.grace, settings.answer_within, settings.keepalive, settings.on_lost)
    except OSError as error:
        raise FileError(f"{path}: {reason(error)}") from None
    except msgspec.ValidationError as error:
        keys = ", ".join(field.name for field in msgspec.structs.fields(RunSettings))
        hint = f" (the keys are {keys})" if "unknown field" in str(error) else ""
        raise FileError(f"{path}: {error}{hint}") from None
    except CollabtopError as error:
        raise FileError(f"{path}: {error}") from None
    except ValueError as error:
        raise FileError(f"{path}: invalid TOML: {error}") from None
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
    """Wait for the sites, make the run and return the result; with a log, an earlier run is continued."""
    team = SitesTeam(
        settings.roster(),
        listen=listen,
        cert=cert,
        key=key,
        authority=authority,
        on_event=on_site,
        **settings.chosen("wait", "grace", "answer_within", "on_lost", "keepalive"),
    )
    return identify(
        settings.remote_arms(),
        settings.m,
        agents=settings.agents,
        team=team,
        checkpoint=log,
        on_event=on_event,
        progress=progress,
        watch=watch,
        **settings.chosen(
            "horizon", "confidence", "tolerance", "max_horizon", "robust", "privacy", "algorithm", "options", "seed"
        ),
    )
