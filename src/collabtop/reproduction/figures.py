"""The paper's four figures, twelve panels, in one style that also reads in grey."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from collabtop.reproduction.evidence import FULL, FULL_NON_IID, KZZ, PRINTED, PRINTED_NON_IID, UNIFORM, Evidence, Line
from collabtop.reproduction.experiments import FigurePlan, Panel
from collabtop.studies.table import PointSummary

# Larger and behind, so that it is seen where two lines lie on top of each other.
_OPEN: dict[str, Any] = {"markerfacecolor": "white", "markersize": 7, "zorder": 1.9}
# Colours of Okabe and Ito, which the colour-blind tell apart; markers and dashes do so in grey.
_STYLES: dict[Line, dict[str, Any]] = {
    PRINTED: {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    FULL: {"color": "#0072B2", "marker": "o", "linestyle": "--", **_OPEN},
    KZZ: {"color": "#D55E00", "marker": "s", "linestyle": "-"},
    Line("kzz-balanced"): {"color": "#D55E00", "marker": "s", "linestyle": "--", **_OPEN},
    PRINTED_NON_IID: {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    FULL_NON_IID: {"color": "#0072B2", "marker": "o", "linestyle": "--", **_OPEN},
    UNIFORM: {"color": "#444444", "marker": "D", "linestyle": "-."},
}
_BEYOND: tuple[dict[str, Any], ...] = (
    {"color": "#007A5A", "marker": "^", "linestyle": "-", "markersize": 6},
    {"color": "#CC79A7", "marker": "v", "linestyle": ":", "markersize": 6},
    {"color": "#000000", "marker": "P", "linestyle": ":", "markersize": 6},
)
_LOOK: Any = {
    "font.family": "DejaVu Sans",  # comes with Matplotlib, so the figures are the same everywhere
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "svg.hashsalt": "collabtop",
    "pdf.fonttype": 42,
}
BARS = (
    "Bars: the standard deviation over runs of words, as in the paper, and the Wilson 95% interval of an error "
    "probability. There the paper has the standard deviation too; that of a right or wrong answer follows from the "
    "probability itself, and does not tell how well it is known. In the panels of errors, lines are moved "
    "a little sideways so that their bars can be seen."
)
"""What the bars stand for, and where that is not what the paper's stand for."""
_WIDTH, _ROW, _LEGEND = 7.2, 2.6, 0.75  # inches: the width of a printed page's text
_ASIDE = 0.012  # how far lines are moved apart, so that their bars do not hide each other


@contextmanager
def figure_style() -> Iterator[None]:
    """The style in which figures are made and saved; what was set before comes back."""
    with mpl.rc_context(_LOOK):
        yield


def line_style(line: Line, lines: Sequence[Line]) -> dict[str, Any]:
    """Colour, marker and dashes of one of the lines: the same in every picture."""
    beyond = [other for other in lines if other not in _STYLES]
    return _STYLES.get(line) or _BEYOND[beyond.index(line) % len(_BEYOND)]


def paper_figure(plan: FigurePlan, evidence: Evidence) -> Figure:
    """Draw one figure of the paper from the points.

    Bars are as `BARS` says.
    """
    with figure_style():
        rows = (len(plan.panels) + 1) // 2
        figure = Figure(figsize=(_WIDTH, _ROW * rows + _LEGEND), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(rows, 2, squeeze=False)
        lines = evidence.lines(plan.arms)
        for axes, panel in zip(grid.flat, plan.panels, strict=True):
            _draw(axes, panel, lines, evidence)
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2 if len(labels) == 4 else 3, frameon=False)
    return figure


def panel_points(panel: Panel, line: Line, evidence: Evidence) -> list[PointSummary]:
    """The points of one line in one panel, from left to right."""
    if panel.against == "horizon":
        return evidence.sweep(line, panel.arms, panel.m, agents=panel.fixed)
    return evidence.sweep(line, panel.arms, panel.m, horizon=panel.fixed)


def _draw(axes: Axes, panel: Panel, lines: Sequence[Line], evidence: Evidence) -> None:
    places: set[int] = set()
    for number, line in enumerate(lines):
        points = panel_points(panel, line, evidence)
        x = [getattr(point, panel.against) for point in points]
        places.update(x)
        if panel.measure == "error":
            x = [place * (1 + _ASIDE * (number - (len(lines) - 1) / 2)) for place in x]
        heights, bars = _heights(panel, points)
        axes.errorbar(x, heights, yerr=bars, label=line.name, capsize=1.8, elinewidth=0.7, **line_style(line, lines))
    axes.set_title(f"({panel.letter}) {panel.title}", loc="left")
    _finish_x(axes, panel, sorted(places))
    _finish_y(axes, panel, empty=not places)


def _heights(panel: Panel, points: Sequence[PointSummary]) -> tuple[list[float], list[list[float]]]:
    if panel.measure == "error":
        below = [max(0.0, point.error - point.error_low) for point in points]
        above = [max(0.0, point.error_high - point.error) for point in points]
        return [point.error for point in points], [below, above]
    spread = [point.words_sd for point in points]
    return [point.words_mean for point in points], [spread, spread]


def _finish_x(axes: Axes, panel: Panel, places: list[int]) -> None:
    if panel.against == "horizon":
        axes.set_xscale("log" if places else "linear")
        axes.set_xlabel("time horizon T (thousand time steps)")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:,.0f}"))
        axes.xaxis.set_major_locator(FixedLocator(_apart(places)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xlabel("number of agents K")
        axes.set_xlim(0, max(places, default=1) * 1.04)


def _apart(places: list[int], factor: float = 1.25) -> list[int]:
    """Those of the places whose labels do not touch on a log axis."""
    kept: list[int] = []
    for place in places:
        if not kept or place >= factor * kept[-1]:
            kept.append(place)
    return kept


def _finish_y(axes: Axes, panel: Panel, *, empty: bool) -> None:
    if panel.measure == "error":
        axes.set_ylabel("probability of a wrong answer")
        axes.set_ylim(-0.03, 1.03)
        return
    axes.set_ylabel("communication (words)")
    if empty:  # every algorithm refused these horizons: a log scale would have nothing to go by
        return
    axes.set_yscale("log")
    axes.set_ylim(*round_ends(*axes.dataLim.intervaly))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def round_ends(low: float, high: float) -> tuple[float, float]:
    """Ends of a log axis a little beyond the nearest of 1, 2, 5, 10, ..., so that there is a label past the last point.

    >>> [round(end) for end in round_ends(5_470, 31_240)]
    [4666, 53576]
    """
    ends = [digit * 10.0**power for power in range(13) for digit in (1, 2, 5)]
    first, last = max(end for end in ends if end <= max(low, 1)), min(end for end in ends if end > high)
    beyond = (last / first) ** 0.03  # room for a marker
    return first / beyond, last * beyond


def describe(plan: FigurePlan, evidence: Evidence) -> str:
    """The figure in words, for those who cannot see it: where each line begins and ends."""
    parts = [f"Figure {plan.number}. {plan.title}."]
    for panel in plan.panels:
        ends = []
        for line in evidence.lines(plan.arms):
            points = panel_points(panel, line, evidence)
            if points:
                values = [_value(panel, point) for point in (points[0], points[-1])]
                ends.append(f"{line.name} from {values[0]} to {values[1]}")
        parts.append(f"Panel {panel.letter}, {panel.title}: {'; '.join(ends)}.")
    return " ".join(parts)


def _value(panel: Panel, point: PointSummary) -> str:
    return f"{point.error:.2f}" if panel.measure == "error" else f"{point.words_mean:,.0f} words"
