"""Horizon against communication at error .01: two prices in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from collabtop.reproduction.evidence import Evidence, Line
from collabtop.reproduction.experiments import AGENTS, IID
from collabtop.reproduction.figures import figure_style, line_style, round_ends
from collabtop.reproduction.prices import SETTINGS, Price, prices, said

_SIZE = (7.2, 6.1)
_BAR, _PALE = 1.0, 0.55


def pareto_figure(evidence: Evidence) -> Figure:
    """Horizon against communication for each algorithm: lower left is better."""
    every = prices(evidence)
    with figure_style():
        figure = Figure(figsize=_SIZE, layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(2, 2)
        handles: list[Line2D] = []
        for letter, axes, (arms, m) in zip("abcd", grid.flat, SETTINGS, strict=True):
            some = [price for price in every if (price.arms, price.m) == (arms, m)]
            lines = evidence.lines(arms)
            kind = "IID" if arms == IID else "non-IID"
            axes.set_title(f"({letter}) Top-{m}, {kind} data, K = {evidence.arms[arms].agents or AGENTS}", loc="left")
            axes.set_ylabel("communication (words)" if arms == IID else "communication (bits)")
            _draw(axes, some, lines)
            known = {handle.get_label() for handle in handles}
            handles += [_handle(it.line, lines) for it in some if it.line.name not in known]
        handles += [_note(rough) for rough in sorted({price.rough for price in every})]
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _look(line: Line, lines: Sequence[Line]) -> dict[str, Any]:
    return {**line_style(line, lines), "linestyle": "none", "markersize": 7}


def _handle(line: Line, lines: Sequence[Line]) -> Line2D:
    return Line2D([], [], label=line.name, **_look(line, lines))


def _note(rough: bool) -> Line2D:
    """What a bar of one of the two kinds stands for."""
    if rough:
        return Line2D(
            [], [], label="rough: panels' runs alone", color="0.2", linewidth=_BAR, linestyle=":", alpha=_PALE
        )
    return Line2D([], [], label="95% interval, deep study", color="0.2", linewidth=_BAR)


def _draw(axes: Axes, some: Sequence[Price], lines: Sequence[Line]) -> None:
    axes.set_xlabel("horizon for error .01 (thousand time steps)")
    if not some:  # a log scale would have nothing to go by
        axes.text(0.5, 0.5, "no error came down to .01", ha="center", transform=axes.transAxes)
        return
    for price in some:
        at, shade = price.at, _PALE if price.rough else 1.0
        bars = [[at.horizon - at.low], [at.high - at.horizon]]
        style = _look(price.line, lines)
        drawn = axes.errorbar(
            [at.horizon],
            [said(price)],
            xerr=bars,
            label=price.line.name,
            alpha=shade,
            capsize=0 if price.rough else 2,
            elinewidth=_BAR,
            **style,
        )
        if price.rough:
            drawn[2][0].set_linestyle(":")
    _draw_front(axes, some)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, shown in ((axes.xaxis, 1000.0), (axes.yaxis, 1.0)):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _, unit=shown: f"{value / unit:,.0f}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlim(*round_ends(*axes.dataLim.intervalx))
    axes.set_ylim(*round_ends(*axes.dataLim.intervaly))


def _draw_front(axes: Axes, some: Sequence[Price]) -> None:
    front = sorted((it for it in some if not any(map(it.is_beaten_by, some))), key=lambda it: it.at.horizon)
    x, y = [it.at.horizon for it in front], [said(it) for it in front]
    axes.plot(x, y, color="0.75", linewidth=1, zorder=1, drawstyle="steps-post")
