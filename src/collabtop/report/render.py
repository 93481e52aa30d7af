"""Figures as files: vector for print and screen, pixels for everything else."""

from __future__ import annotations

import io
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec

from collabtop.report.evidence import Evidence
from collabtop.report.experiments import FigurePlan
from collabtop.report.figures import describe, figure_style, paper_figure
from collabtop.studies.runner import process_context, process_count

_UNDATED: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


class RenderedFigure(msgspec.Struct, frozen=True):
    """One figure in every format."""

    plan: FigurePlan
    name: str
    description: str
    files: dict[str, bytes]
    """By ending; the same points give the same bytes."""


def rendered_figures(
    plans: Sequence[FigurePlan], evidence: Evidence, *, jobs: int | None = None
) -> list[RenderedFigure]:
    """Draw the figures and put them into every format."""
    draw = partial(_rendered, evidence=evidence)
    workers = min(process_count(jobs), len(plans))
    if workers == 1:
        return [draw(plan) for plan in plans]
    with ProcessPoolExecutor(workers, mp_context=process_context()) as pool:
        return list(pool.map(draw, plans))


def _rendered(plan: FigurePlan, evidence: Evidence) -> RenderedFigure:
    figure = paper_figure(plan, evidence)
    files = {}
    with figure_style():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the layout is found once, not for each format again
        for ending, undated in _UNDATED.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=ending, dpi=200, metadata=undated)
            files[ending] = buffer.getvalue()
    return RenderedFigure(plan, f"figure-{plan.number}", describe(plan, evidence), files)
