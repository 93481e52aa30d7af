"""The figure of horizon and communication at error .01."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from collabtop.reproduction.evidence import Evidence, Line
from collabtop.reproduction.experiments import AGENTS, IID, data_kind
from collabtop.reproduction.figures import figure_style, line_style, round_ends
from collabtop.reproduction.prices import SETTINGS, Price, prices

_SIZE = (7.2, 6.1)
_BAR, _PALE = 1.0, 0.55


def pareto_figure(evidence: Evidence) -> Figure:
    """Draw communication over horizon for each algorithm: lower left is better."""
    all_prices = prices(evidence)
    with figure_style():
        figure = Figure(figsize=_SIZE, layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(2, 2)
        handles: list[Line2D] = []
        for letter, axes, (arms, m) in zip("abcd", grid.flat, SETTINGS, strict=True):
            shown = [price for price in all_prices if (price.arms, price.m) == (arms, m)]
            lines = evidence.lines(arms)
            agents = evidence.arms[arms].agents or AGENTS
            axes.set_title(f"({letter}) Top-{m}, {data_kind(arms)} data, K = {agents}", loc="left")
            axes.set_ylabel("communication (words)" if arms == IID else "communication (bits)")
            _draw(axes, shown, lines)
            labels = {handle.get_label() for handle in handles}
            handles += [_handle(price.line, lines) for price in shown if price.line.name not in labels]
        handles += [_bar_handle(rough) for rough in sorted({price.rough for price in all_prices})]
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _marker_style(line: Line, lines: Sequence[Line]) -> dict[str, Any]:
    return {**line_style(line, lines), "linestyle": "none", "markersize": 7}


def _handle(line: Line, lines: Sequence[Line]) -> Line2D:
    return Line2D([], [], label=line.name, **_marker_style(line, lines))


def _bar_handle(rough: bool) -> Line2D:
    """The legend entry for one of the two kinds of bars."""
    if rough:
        return Line2D(
            [], [], label="rough: runs of the panels alone", color="0.2", linewidth=_BAR, linestyle=":", alpha=_PALE
        )
    return Line2D([], [], label="95% interval, deep study", color="0.2", linewidth=_BAR)


def _draw(axes: Axes, shown: Sequence[Price], lines: Sequence[Line]) -> None:
    axes.set_xlabel("horizon for error .01 (thousand time steps)")
    if not shown:  # a log scale needs data
        axes.text(0.5, 0.5, "horizon for error .01 not determined", ha="center", transform=axes.transAxes)
        return
    for price in shown:
        at, alpha = price.at, _PALE if price.rough else 1.0
        bars = [[at.horizon - at.low], [at.high - at.horizon]]
        style = _marker_style(price.line, lines)
        drawn = axes.errorbar(
            [at.horizon],
            [price.communication],
            xerr=bars,
            label=price.line.name,
            alpha=alpha,
            capsize=0 if price.rough else 2,
            elinewidth=_BAR,
            **style,
        )
        if price.rough:
            drawn[2][0].set_linestyle(":")
    _draw_front(axes, shown)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, unit in ((axes.xaxis, 1000.0), (axes.yaxis, 1.0)):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _, unit=unit: f"{value / unit:,.0f}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlim(*round_ends(*axes.dataLim.intervalx))
    axes.set_ylim(*round_ends(*axes.dataLim.intervaly))


def _draw_front(axes: Axes, shown: Sequence[Price]) -> None:
    unbeaten = [price for price in shown if not any(map(price.is_beaten_by, shown))]
    front = sorted(unbeaten, key=lambda price: price.at.horizon)
    x, y = [price.at.horizon for price in front], [price.communication for price in front]
    axes.plot(x, y, color="0.75", linewidth=1, zorder=1, drawstyle="steps-post")
