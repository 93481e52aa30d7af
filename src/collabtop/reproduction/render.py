"""Rendering of the report's figures as SVG, PDF and PNG."""

import io
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from collabtop.display.save import METADATA
from collabtop.reproduction.evidence import Evidence
from collabtop.reproduction.experiments import FigurePlan
from collabtop.reproduction.figures import describe, figure_style, paper_figure
from collabtop.reproduction.pareto import pareto_figure
from collabtop.reproduction.prices import CAPTION, describe_prices
from collabtop.studies.runner import process_count, process_pool

_DPI = 200
# PNG first, because the other two set their own resolution.
_CANVASES: dict[str, type[Any]] = {"png": FigureCanvasAgg, "svg": FigureCanvasSVG, "pdf": FigureCanvasPdf}


class RenderedFigure(msgspec.Struct, frozen=True):
    """One figure in every format."""

    name: str
    caption: str
    description: str
    files: dict[str, bytes]
    """By format; the same points give the same bytes."""
    plan: FigurePlan | None
    """The plan of a figure of the paper, or None for the figure of prices."""


def rendered_figures(
    plans: Sequence[FigurePlan], evidence: Evidence, *, jobs: int | None = None
) -> list[RenderedFigure]:
    """Draw the paper's figures and the figure of prices, in every format."""
    render, all_plans = partial(_render, evidence=evidence), [*plans, None]
    workers = min(process_count(jobs), len(all_plans))
    if workers == 1:
        return [render(plan) for plan in all_plans]
    with process_pool(workers) as pool:
        return list(pool.map(render, all_plans))


def _render(plan: FigurePlan | None, evidence: Evidence) -> RenderedFigure:
    if plan is None:
        files = _files(pareto_figure(evidence))
        return RenderedFigure("pareto", f"{CAPTION}.", describe_prices(evidence), files, None)
    caption = f"Figure {plan.number}. {plan.title}."
    files = _files(paper_figure(plan, evidence))
    return RenderedFigure(f"figure-{plan.number}", caption, describe(plan, evidence), files, plan)


def _files(figure: Figure) -> dict[str, bytes]:
    """The figure in each format."""
    files = {}
    with figure_style():
        figure.dpi = _DPI
        for name, canvas in _CANVASES.items():
            buffer = io.BytesIO()
            getattr(canvas(figure), f"print_{name}")(buffer, metadata=METADATA[name])
            files[name] = buffer.getvalue()
    return files
