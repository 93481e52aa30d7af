"""Figures as files: vector for print and screen, pixels for everything else."""

from __future__ import annotations

import io
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec
from matplotlib.figure import Figure

from collabtop.report.evidence import Evidence
from collabtop.report.experiments import FigurePlan
from collabtop.report.figures import describe, figure_style, paper_figure
from collabtop.report.pareto import pareto_figure
from collabtop.report.prices import CAPTION, describe_prices
from collabtop.studies.runner import process_context, process_count

_UNDATED: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


class RenderedFigure(msgspec.Struct, frozen=True):
    """One figure in every format."""

    name: str
    caption: str
    description: str
    files: dict[str, bytes]
    """By ending; the same points give the same bytes."""
    plan: FigurePlan | None
    """The paper's figure that this is, or None: the picture of prices."""


def rendered_figures(
    plans: Sequence[FigurePlan], evidence: Evidence, *, jobs: int | None = None
) -> list[RenderedFigure]:
    """Draw the paper's figures and the picture of prices, and put them into every format."""
    draw, wanted = partial(_rendered, evidence=evidence), [*plans, None]
    workers = min(process_count(jobs), len(wanted))
    if workers == 1:
        return [draw(plan) for plan in wanted]
    with ProcessPoolExecutor(workers, mp_context=process_context()) as pool:
        return list(pool.map(draw, wanted))


def _rendered(plan: FigurePlan | None, evidence: Evidence) -> RenderedFigure:
    if plan is None:
        files = _files(pareto_figure(evidence))
        return RenderedFigure("pareto", f"{CAPTION}.", describe_prices(evidence), files, None)
    caption = f"Figure {plan.number}. {plan.title}."
    files = _files(paper_figure(plan, evidence))
    return RenderedFigure(f"figure-{plan.number}", caption, describe(plan, evidence), files, plan)


def _files(figure: Figure) -> dict[str, bytes]:
    files = {}
    with figure_style():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the layout is found once, not for each format again
        for ending, undated in _UNDATED.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=ending, dpi=200, metadata=undated)
            files[ending] = buffer.getvalue()
    return files
