"""Horizon against communication at error .01: two prices in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from collabtop.report.evidence import Evidence, Line
from collabtop.report.experiments import AGENTS, IID
from collabtop.report.figures import figure_style, line_style
from collabtop.report.prices import SETTINGS, Price, prices, said

_SIZE = (7.2, 5.9)


def pareto_figure(evidence: Evidence) -> Figure:
    """Horizon against communication for each algorithm: lower left is better."""
    every = prices(evidence)
    with figure_style():
        figure = Figure(figsize=_SIZE, layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(2, 2)
        handles: dict[str, Any] = {}
        for letter, axes, (arms, m) in zip("abcd", grid.flat, SETTINGS, strict=True):
            some = [price for price in every if (price.arms, price.m) == (arms, m)]
            kind = "IID" if arms == IID else "non-IID"
            axes.set_title(f"({letter}) Top-{m}, {kind} data, K = {evidence.arms[arms].agents or AGENTS}", loc="left")
            axes.set_ylabel("communication (words)" if arms == IID else "communication (bits)")
            _draw(axes, some, evidence.lines(arms))
            handles.update(dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)))
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw(axes: Axes, some: Sequence[Price], lines: Sequence[Line]) -> None:
    axes.set_xlabel("horizon for error .01 (thousand time steps)")
    if not some:  # a log scale would have nothing to go by
        axes.text(0.5, 0.5, "no error came down to .01", ha="center", transform=axes.transAxes)
        return
    for price in some:
        at, style = price.at, {**line_style(price.line, lines), "linestyle": "none", "markersize": 7}
        bars = [[at.horizon - at.low], [at.high - at.horizon]]
        axes.errorbar([at.horizon], [said(price)], xerr=bars, label=price.line.name, capsize=2, elinewidth=0.8, **style)
    _draw_front(axes, some)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, shown in ((axes.xaxis, 1000.0), (axes.yaxis, 1.0)):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _, unit=shown: f"{value / unit:,.0f}"))
        axis.set_minor_formatter(NullFormatter())
    axes.margins(0.12)


def _draw_front(axes: Axes, some: Sequence[Price]) -> None:
    front = sorted((it for it in some if not any(map(it.is_beaten_by, some))), key=lambda it: it.at.horizon)
    x, y = [it.at.horizon for it in front], [said(it) for it in front]
    axes.plot(x, y, color="0.75", linewidth=1, zorder=1, drawstyle="steps-post")
