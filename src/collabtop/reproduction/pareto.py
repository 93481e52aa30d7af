"""The figure of horizon and communication at error .01."""

import math
from collections.abc import Sequence
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from collabtop.crossing import Crossing, NotReached
from collabtop.reproduction.evidence import IID, Evidence, Line
from collabtop.reproduction.experiments import AGENTS, data_kind
from collabtop.reproduction.figures import figure_style, legend_height, line_style, place_panels, round_ends
from collabtop.reproduction.prices import SETTINGS, Price, left_out, prices

_SIZE = (7.2, 7.4)
_BAR = 1.0
_NOTE_SIZE, _NOTE_WIDTH = 6.5, 52
_NOTE_LINE = 0.115  # inches
_WIDE = 120.0  # ends of an axis whose quotient is larger get labels at powers of ten only


def pareto_figure(evidence: Evidence) -> Figure:
    """Draw communication over horizon for each algorithm: lower left is better."""
    all_prices = prices(evidence)
    with figure_style():
        figure = Figure(figsize=_SIZE)
        FigureCanvasAgg(figure)
        grid = figure.subplots(2, 2)
        handles: dict[str, Line2D] = {}
        notes: list[int] = []
        for letter, axes, (arms, m) in zip("abcd", grid.flat, SETTINGS, strict=True):
            shown = [price for price in all_prices if (price.arms, price.m) == (arms, m)]
            lines = [price.line for price in shown]
            agents = evidence.arms[arms].agents or AGENTS
            axes.set_title(f"({letter}) Top-{m}, {data_kind(arms)} data, K = {agents}", loc="left")
            axes.set_ylabel("communication (words)" if arms == IID else "communication (bits)")
            notes.append(_write_reasons(axes, shown))
            _draw(axes, shown, lines)
            for price in shown:
                handles.setdefault(
                    price.line.name, Line2D([], [], label=price.line.name, **_legend_style(price, lines))
                )
        bars = Line2D([], [], label="95% intervals", color="0.2", linewidth=_BAR)
        figure.legend(handles=[*handles.values(), bars], loc="lower center", ncols=3, frameon=False)
        heights = [_NOTE_LINE * max(notes[:2]), _NOTE_LINE * max(notes[2:])]
        place_panels(figure, grid, legend_height(len(handles) + 1, columns=3), heights)
    return figure


def _marker_style(line: Line, lines: Sequence[Line]) -> dict[str, Any]:
    return {**line_style(line, lines), "linestyle": "none", "markersize": 7}


def _legend_style(price: Price, lines: Sequence[Line]) -> dict[str, Any]:
    return line_style(price.line, lines) if price.is_free else _marker_style(price.line, lines)


def _draw(axes: Axes, shown: Sequence[Price], lines: Sequence[Line]) -> None:
    axes.set_xlabel("horizon for error .01 (thousand time steps)")
    ends = _horizon_ends(shown)
    drawn = [price for price in shown if price.runs]
    if not drawn:  # a log scale needs data
        axes.text(0.5, 0.5, "no algorithm was run", ha="center", transform=axes.transAxes)
        return
    for price in drawn:
        _draw_price(axes, price, lines, ends)
    for price in shown:
        if price.is_free:
            _draw_free(axes, price, lines, ends)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*round_ends(*ends))
    axes.set_ylim(*round_ends(*axes.dataLim.intervaly))
    for axis, unit in ((axes.xaxis, 1000.0), (axes.yaxis, 1.0)):
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < _WIDE * low else (1,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _, unit=unit: _number(value / unit)))
        axis.set_minor_locator(NullLocator())


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _write_reasons(axes: Axes, shown: Sequence[Price]) -> int:
    """Below the panel: which algorithms have no estimate or do not apply, and why. Returns the number of lines."""
    reasons = left_out(shown[0].arms, shown[0].m) if shown else {}
    for price in shown:
        if isinstance(price.at, NotReached):
            reasons.setdefault(price.at.reason, []).append(price.line.name.replace(" schedule", ""))
    notes = [fill(f"{'; '.join(names)}: {reason}", _NOTE_WIDTH) for reason, names in reasons.items()]
    text = "\n".join(notes)
    if text:
        axes.annotate(text, (0, 0), (0, -30), xycoords="axes fraction", textcoords="offset points",
                      fontsize=_NOTE_SIZE, va="top", ha="left")  # fmt: skip
    return len(text.splitlines())


def _horizon_ends(shown: Sequence[Price]) -> tuple[float, float]:
    """The smallest and largest horizon of the intervals; those of the sweep for an interval with an open end."""
    ends = [(*price.limits, *(price.swept if isinstance(price.at, NotReached) else ())) for price in shown]
    known = [end for price_ends in ends for end in price_ends if 0 < end < math.inf]
    return (min(known), max(known)) if known else (1_000.0, 10_000.0)


def _draw_free(axes: Axes, price: Price, lines: Sequence[Line], ends: tuple[float, float]) -> None:
    """A vertical line in its interval: communication is not counted."""
    style, (low, high) = line_style(price.line, lines), price.limits
    low, high = max(low, ends[0]), min(high, ends[1])
    at = price.at.horizon if isinstance(price.at, Crossing) else math.sqrt(low * high)
    axes.axvspan(low, high, color=style["color"], alpha=0.12, linewidth=0)
    axes.axvline(at, label=price.line.name, color=style["color"], linestyle=style["linestyle"], linewidth=_BAR)


def _draw_price(axes: Axes, price: Price, lines: Sequence[Line], ends: tuple[float, float]) -> None:
    """A mark with bars; if the horizon was not located, a bar over where it may lie, with arrows at open ends."""
    style = _marker_style(price.line, lines)
    mean, low, high = price.communication
    vertical = [[mean - max(low, 1.0)], [high - mean]]
    if isinstance(price.at, Crossing):
        at = price.at
        horizontal = [[at.horizon - at.low], [at.high - at.horizon]]
        axes.errorbar([at.horizon], [mean], xerr=horizontal, yerr=vertical, label=price.line.name, capsize=2,
                      elinewidth=_BAR, **style)  # fmt: skip
        return
    left, right = price.limits
    from_left, to_right = left if left > 0 else ends[0], right if right < math.inf else ends[1]
    middle = math.sqrt(from_left * to_right)
    drawn = axes.errorbar([middle], [mean], xerr=[[middle - from_left], [to_right - middle]], yerr=vertical,
                          label=price.line.name, elinewidth=_BAR, **{**style, "marker": ""})  # fmt: skip
    drawn[2][0].set_linestyle(":")
    for end, marker, is_open in ((from_left, "<", left <= 0), (to_right, ">", right == math.inf)):
        shown = marker if is_open else "|"
        axes.plot([end], [mean], marker=shown, color=style["color"], markersize=6, linestyle="none")
    axes.plot([middle], [mean], **{**style, "markersize": 5, "alpha": 0.6})
