"""The reproduction of the paper: run the studies, judge the statements, write the report."""

import os
import platform
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from collabtop._version import __version__
from collabtop.arms import BernoulliArms, HeterogeneousArms
from collabtop.errors import FileError, InputError, reason
from collabtop.reproduction.crossings import RunStudy, crossing_targets, find_crossings
from collabtop.reproduction.evidence import IID, KZZ, NON_IID, PRINTED, Evidence, Line, WordsByKind
from collabtop.reproduction.experiments import (
    AGENTS,
    baselines_study,
    figure_plans,
    fixed_horizon,
    panels_study,
    pilot_study,
    sweeps,
    words_study,
)
from collabtop.reproduction.growth_study import (
    ObservedRun,
    ObserveStudy,
    growth_evidence,
    growth_studies,
    local_study,
    observed_costs,
)
from collabtop.reproduction.prices import prices
from collabtop.reproduction.statements import experiment_statements
from collabtop.reproduction.theorem_studies import EASY, bound_study, disjointness, disjointness_study, easy_arms
from collabtop.reproduction.theorems import theorem_statements
from collabtop.reproduction.verdicts import Statement, judged
from collabtop.studies.grid import Study
from collabtop.studies.runner import run_again
from collabtop.studies.table import Row, StudyTable, write_whole
from collabtop.validation import wrong_value

TITLE = "Communication-Efficient Collaborative Best Arm Identification: reproduction report"
SUBTITLE = "The experiments and theorems of Karpov and Zhang (AAAI 2023)"
_DISJOINTNESS_RUNS, _QUICK_DISJOINTNESS_RUNS = (
    100,
    25,
)  # these need answers and bits, so each is made message by message
_LEDGERS = 20  # runs per point whose ledgers are read, because the words of single runs differ by a third


class Settings(msgspec.Struct, frozen=True):
    """What to reproduce."""

    iid: BernoulliArms
    groups: HeterogeneousArms
    source: str
    """The source of the arms, as shown in the report."""
    runs: int = 1_000
    """Runs per IID point; non-IID points have a fifth of them."""
    seed: int = 0
    quick: bool = False
    deep: bool = False


class Reproduction(msgspec.Struct, frozen=True):
    """The results of a reproduction."""

    settings: Settings
    evidence: Evidence
    statements: tuple[Statement, ...]
    studies: dict[str, int]
    """Number of runs of each study, by its name."""

    def to_dict(self) -> dict[str, Any]:
        """The results as plain Python objects."""
        evidence = self.evidence
        return {
            "settings": self.facts(),
            "studies": self.studies,
            "statements": msgspec.to_builtins(self.statements),
            "points": msgspec.to_builtins(evidence.points),
            "baselines": msgspec.to_builtins(evidence.baselines),
            "words_over_agents": msgspec.to_builtins(evidence.words_over_agents),
            "bound": msgspec.to_builtins(evidence.bound),
            "words_by_kind": msgspec.to_builtins(evidence.words_by_kind),
            "disjointness": msgspec.to_builtins(evidence.disjointness),
            "crossings": msgspec.to_builtins(evidence.crossings),
            "prices": msgspec.to_builtins(prices(evidence)),
            "growth": None if evidence.growth is None else msgspec.to_builtins(evidence.growth.points),
        }

    def facts(self) -> dict[str, Any]:
        """The settings and the machine."""
        settings = self.settings
        iid, groups = settings.iid, settings.groups
        return {
            "arms": settings.source,
            "IID arms": f"{iid.n:,}, H<1> = {self.evidence.complexity(IID, 1):,.0f}, "
            f"H<8> = {self.evidence.complexity(IID, 8):,.0f}",
            "non-IID arms": f"{groups.n:,} for {groups.agents} agents, "
            f"H<1> = {self.evidence.complexity(NON_IID, 1):,.0f}, H<8> = {self.evidence.complexity(NON_IID, 8):,.0f}",
            "runs a point": f"{settings.runs:,} (non-IID: {max(2, settings.runs // 5):,})",
            "runs in all": f"{sum(self.studies.values()):,} in {len(self.studies)} studies",
            "seed": settings.seed,
            "kind": "quick" if settings.quick else "deep" if settings.deep else "standard",
            "collabtop": __version__,
            "Python": platform.python_version(),
            "NumPy": np.__version__,
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        }


def measure(settings: Settings, out: Path, *, jobs: int | None = None, progress: bool = False) -> Reproduction:
    """Run the studies below `out`, or load them if they were run before, and judge the statements.

    Each study has its own folder, named with its fingerprint. So a quick and a full reproduction, or reproductions with
    different arms, can share one `out`, and each continues where it was stopped.
    """
    _check(settings)
    studies: dict[str, int] = {}

    def folder(name: str, study: Study) -> Path:
        runs = sum(point.runs for point in study.points)
        studies[name] = studies.get(name, 0) + runs
        if progress:
            _print(f"{name}: {runs:,} runs")
        return out / "studies" / f"{name}-{study.fingerprint[:8]}"

    def run(name: str, study: Study) -> StudyTable:
        return study.run(folder(name, study), jobs=jobs, progress=progress)

    def observe(name: str, study: Study) -> list[ObservedRun]:
        return observed_costs(folder(name, study) / "rounds.json", study, jobs=jobs)

    iid, groups, seed, quick = settings.iid, settings.groups, settings.seed, settings.quick
    pilot = run("pilot", pilot_study(iid, groups, seed=seed, quick=quick))
    ranges = sweeps(pilot.points(), iid, quick=quick)
    panels = panels_study(iid, groups, ranges, runs=settings.runs, seed=seed)
    table = run("panels", panels)
    rivals = run("baselines", baselines_study(iid, ranges, runs=settings.runs, seed=seed, quick=quick))
    bound = run("bound", bound_study(seed=settings.seed, quick=settings.quick))
    sets = disjointness_study(
        runs=min(settings.runs, _QUICK_DISJOINTNESS_RUNS if quick else _DISJOINTNESS_RUNS), seed=seed
    )
    evidence = Evidence(
        points=tuple(table.points()),
        baselines=tuple(rivals.points()),
        arms={IID: settings.iid, NON_IID: settings.groups, EASY: easy_arms()},
        bound=tuple(bound.points()),
        disjointness=disjointness(sets, run("disjointness", sets)),
        words_by_kind=_words_by_kind(panels, table),
    )
    if not settings.quick:
        words = run("words", words_study(iid, ranges, seed=seed))
        evidence = msgspec.structs.replace(evidence, words_over_agents=tuple(words.points()))
        evidence = _with_large_studies(settings, evidence, run, observe)
    statements = judged([*experiment_statements(evidence), *theorem_statements(evidence)])
    return Reproduction(settings, evidence, statements, studies)


def _check(settings: Settings) -> None:
    if settings.runs < 2:
        raise wrong_value("runs", settings.runs, "at least 2 runs per point are needed")
    if settings.quick and settings.deep:
        raise InputError("quick and deep exclude each other: choose one of them")


def _print(line: str) -> None:
    from rich.console import Console

    Console(stderr=True, highlight=False).print(line)


def _words_by_kind(study: Study, table: StudyTable) -> dict[str, WordsByKind]:
    """Words by kind of message in the setting of the paper's comparison, from the ledgers of some panel runs."""
    by_algorithm: dict[str, WordsByKind] = {}
    horizon = fixed_horizon(study.arms[IID], 1)
    for line in (PRINTED, KZZ):
        rows = [row for row in table.rows if _is_compared(row, line, horizon) and row.engine == "messages"][:_LEDGERS]
        if rows:
            ledgers = (run_again(study, row).ledger for row in rows)
            by_algorithm[line.algorithm] = WordsByKind(tuple(ledger.words_by("kind") for ledger in ledgers))
    return by_algorithm


def _is_compared(row: Row, line: Line, horizon: int) -> bool:
    setting = (row.arms, row.m, row.agents, row.horizon) == (IID, 1, AGENTS, horizon)
    return setting and Line(row.algorithm, row.schedule) == line


def _with_large_studies(
    settings: Settings,
    evidence: Evidence,
    run: RunStudy,
    observe: ObserveStudy,
) -> Evidence:
    targets = crossing_targets(settings.groups.agents or 1, deep=settings.deep)
    return msgspec.structs.replace(
        evidence,
        growth=growth_evidence(
            growth_studies(seed=settings.seed, deep=settings.deep),
            local_study(settings.iid, seed=settings.seed),
            observe,
        ),
        crossings=find_crossings(evidence, targets, run, seed=settings.seed),
    )


def write_report(report: Reproduction, out: Path, *, jobs: int | None = None) -> dict[str, Path]:
    """Write the figures (SVG, PDF, PNG), report.html and report.md, each of them atomically."""
    from collabtop.reproduction.html import html_page  # imports Matplotlib, which is slow
    from collabtop.reproduction.markdown import markdown_page
    from collabtop.reproduction.render import rendered_figures

    figures = rendered_figures(
        figure_plans(report.settings.iid, report.settings.groups.agents or 1), report.evidence, jobs=jobs
    )
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        for figure in figures:
            for name, data in figure.files.items():
                write_whole(out / "figures" / f"{figure.name}.{name}", data)
        write_whole(out / "report.md", markdown_page(report, figures).encode())
        write_whole(out / "report.html", html_page(report, figures).encode())
    except OSError as error:
        raise FileError(f"{out}: {reason(error)}") from None
    return {"html": out / "report.html", "markdown": out / "report.md", "figures": out / "figures"}
