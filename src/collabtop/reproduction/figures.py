"""The paper's four figures with twelve panels, in a style that also works in greyscale."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from collabtop.reproduction.evidence import (
    FULL,
    FULL_NON_IID,
    KZZ,
    NSAR,
    PRINTED,
    PRINTED_NON_IID,
    UNIFORM,
    Evidence,
    Line,
)
from collabtop.reproduction.experiments import FigurePlan, Panel
from collabtop.studies.table import PointSummary

# Larger and behind, so that the marker is visible where two lines coincide.
_OPEN: dict[str, Any] = {"markerfacecolor": "white", "markersize": 7, "zorder": 1.9}
# Colours by Okabe and Ito, which colour-blind readers can distinguish; markers and dashes serve greyscale prints.
_STYLES: dict[Line, dict[str, Any]] = {
    PRINTED: {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    FULL: {"color": "#0072B2", "marker": "o", "linestyle": "--", **_OPEN},
    KZZ: {"color": "#D55E00", "marker": "s", "linestyle": "-"},
    Line("kzz-balanced"): {"color": "#D55E00", "marker": "s", "linestyle": "--", **_OPEN},
    PRINTED_NON_IID: {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    FULL_NON_IID: {"color": "#0072B2", "marker": "o", "linestyle": "--", **_OPEN},
    UNIFORM: {"color": "#444444", "marker": "D", "linestyle": "-."},
    Line("batched-sar"): {"color": "#B8860B", "marker": "v", "linestyle": ":"},
    Line("tzz"): {"color": "#2E86C1", "marker": "X", "linestyle": ":"},
    Line("hkk"): {"color": "#CC79A7", "marker": "P", "linestyle": ":"},
    NSAR: {"color": "#000000", "marker": "", "linestyle": "--"},
}
_OTHER_STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#007A5A", "marker": "^", "linestyle": "-", "markersize": 6},
    {"color": "#CC79A7", "marker": "v", "linestyle": ":", "markersize": 6},
    {"color": "#000000", "marker": "P", "linestyle": ":", "markersize": 6},
)
_RC: Any = {
    "font.family": "DejaVu Sans",  # ships with Matplotlib, so figures are the same everywhere
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titley": 1.0,  # Matplotlib need not look for a place
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
    "Error bars show the standard deviation of words over runs, as in the paper, and the 95% Wilson interval of error "
    "probabilities. For the latter the paper shows the standard deviation as well, but that of a right-or-wrong answer "
    "follows from the probability itself and does not show how precisely the probability is known. In the error "
    "panels, lines are shifted slightly sideways so that their bars do not hide each other."
)
"""What the error bars show, and where they differ from the paper's."""
# Sizes are in inches.
_WIDTH, _ROW = 7.2, 2.6  # the width is that of the text on a printed page
_LEGEND_ROW, _LEGEND_MARGIN = 0.19, 0.15
_LEFT, _BETWEEN, _RIGHT = 0.92, 1.0, 0.28  # beside panels: numbers, and the label of the axis
_ABOVE, _BELOW = 0.28, 0.45  # a panel's title, and the numbers and label below
_CHARACTER, _FROM_NUMBERS, _X_LABEL = 0.068, 0.13, 0.25  # width, and from an axis to its label
_SHIFT = 0.012  # relative distance between neighbouring lines in the error panels


@contextmanager
def figure_style() -> Iterator[None]:
    """The Matplotlib style for drawing and saving figures; restores the previous style at the end."""
    with mpl.rc_context(_RC):
        yield


def line_style(line: Line, lines: Sequence[Line]) -> dict[str, Any]:
    """Colour, marker and dashes of a line, the same in every figure."""
    others = [other for other in lines if other not in _STYLES]
    return _STYLES.get(line) or _OTHER_STYLES[others.index(line) % len(_OTHER_STYLES)]


def paper_figure(plan: FigurePlan, evidence: Evidence) -> Figure:
    """Draw one figure of the paper from the points; `BARS` explains its error bars."""
    with figure_style():
        rows = (len(plan.panels) + 1) // 2
        lines = evidence.lines(plan.arms)
        columns = 2 if len(lines) == 4 else 3
        figure = Figure(figsize=(_WIDTH, _ROW * rows + legend_height(len(lines), columns)))
        FigureCanvasAgg(figure)
        grid = figure.subplots(rows, 2, squeeze=False)
        for axes, panel in zip(grid.flat, plan.panels, strict=True):
            _draw(axes, panel, lines, evidence)
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=columns, frameon=False)
        place_panels(figure, grid, legend_height(len(lines), columns), notes=[0.0] * rows)
    return figure


def legend_height(entries: int, columns: int) -> float:
    """The height of a legend at the foot of a figure, in inches."""
    return -(-entries // columns) * _LEGEND_ROW + _LEGEND_MARGIN


def place_panels(figure: Figure, grid: Any, legend: float, notes: Sequence[float]) -> None:
    """Place the panels above a legend of this height; each row has notes of some height below it.

    The layouts of Matplotlib measure every text several times, which takes half of the time of a report.
    """
    width, height = figure.get_size_inches()
    panel_width = (width - _LEFT - _BETWEEN - _RIGHT) / 2
    panel_height = (height - legend - sum(notes)) / len(grid) - _ABOVE - _BELOW
    bottom = height
    for row, notes_height in zip(grid, notes, strict=True):
        bottom -= _ABOVE + panel_height
        for left, axes in zip((_LEFT, _LEFT + panel_width + _BETWEEN), row, strict=True):
            axes.set_position((left / width, bottom / height, panel_width / width, panel_height / height))
            axes.xaxis.set_label_coords(0.5, -_X_LABEL / panel_height)
            axes.yaxis.set_label_coords(-_numbers_width(axes) / panel_width, 0.5)
        bottom -= _BELOW + notes_height


def _numbers_width(axes: Axes) -> float:
    high = axes.get_ylim()[1]
    return _CHARACTER * (3 if high < 2 else len(f"{high:,.0f}")) + _FROM_NUMBERS


def panel_points(panel: Panel, line: Line, evidence: Evidence) -> list[PointSummary]:
    """The points of one line in one panel, from left to right."""
    if panel.against == "horizon":
        return evidence.sweep(line, panel.arms, panel.m, agents=panel.fixed)
    return evidence.sweep(line, panel.arms, panel.m, horizon=panel.fixed)


def _draw(axes: Axes, panel: Panel, lines: Sequence[Line], evidence: Evidence) -> None:
    positions: set[int] = set()
    for number, line in enumerate(lines):
        points = panel_points(panel, line, evidence)
        x = [getattr(point, panel.against) for point in points]
        positions.update(x)
        if panel.measure == "error":
            x = [position * (1 + _SHIFT * (number - (len(lines) - 1) / 2)) for position in x]
        y, bars = _values(panel, points)
        axes.errorbar(x, y, yerr=bars, label=line.name, capsize=1.8, elinewidth=0.7, **line_style(line, lines))
    axes.set_title(f"({panel.letter}) {panel.title}", loc="left")
    _finish_x(axes, panel, sorted(positions))
    _finish_y(axes, panel, empty=not positions)


def _values(panel: Panel, points: Sequence[PointSummary]) -> tuple[list[float], list[list[float]]]:
    if panel.measure == "error":
        below = [max(0.0, point.error - point.error_low) for point in points]
        above = [max(0.0, point.error_high - point.error) for point in points]
        return [point.error for point in points], [below, above]
    spread = [point.words_sd for point in points]
    return [point.words_mean for point in points], [spread, spread]


def _finish_x(axes: Axes, panel: Panel, positions: list[int]) -> None:
    if panel.against == "horizon":
        axes.set_xscale("log" if positions else "linear")
        axes.set_xlabel("time horizon T (thousand time steps)")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _thousands(value)))
        axes.xaxis.set_major_locator(FixedLocator(_apart(positions)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xlabel("number of agents K")
        axes.set_xlim(0, max(positions, default=1) * 1.04)


def _thousands(value: float) -> str:
    """A horizon in thousands.

    >>> _thousands(1_500), _thousands(2_000_000)
    ('1.5', '2,000')
    """
    return f"{value / 1000:,.0f}" if value % 1000 == 0 else f"{value / 1000:,g}"


_LABELS = 7.5
"""How many labels of a horizon fit below a panel."""


def _apart(positions: list[int]) -> list[int]:
    """The positions whose labels do not overlap on a log axis.

    >>> _apart([43_000, 84_000, 170_000, 330_000, 650_000, 1_300_000, 2_500_000, 5_000_000, 9_900_000])
    [43000, 170000, 650000, 2500000, 9900000]
    """
    factor = max(1.25, (positions[-1] / positions[0]) ** (1 / _LABELS)) if positions else 1.25
    kept: list[int] = []
    for position in positions:
        if not kept or position >= factor * kept[-1]:
            kept.append(position)
    return kept


def _finish_y(axes: Axes, panel: Panel, *, empty: bool) -> None:
    if panel.measure == "error":
        axes.set_ylabel("probability of a wrong answer")
        axes.set_ylim(-0.03, 1.03)
        return
    axes.set_ylabel("communication (words)")
    if empty:  # every algorithm refused these horizons, and a log scale needs data
        return
    axes.set_yscale("log")
    axes.set_ylim(*round_ends(*axes.dataLim.intervaly))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_minor_locator(NullLocator())


def round_ends(low: float, high: float) -> tuple[float, float]:
    """The ends of a log axis, slightly beyond the nearest of 1, 2, 5, 10, ..., so that labels enclose all points.

    >>> [round(end) for end in round_ends(5_470, 31_240)]
    [4666, 53576]
    """
    ends = [digit * 10.0**power for power in range(13) for digit in (1, 2, 5)]
    first, last = max(end for end in ends if end <= max(low, 1)), min(end for end in ends if end > high)
    beyond = (last / first) ** 0.03  # room for a marker
    return first / beyond, last * beyond


def describe(plan: FigurePlan, evidence: Evidence) -> str:
    """A text alternative for the figure: the first and last value of each line."""
    parts = [f"Figure {plan.number}. {plan.title}."]
    for panel in plan.panels:
        ends = []
        for line in evidence.lines(plan.arms):
            points = panel_points(panel, line, evidence)
            if points:
                first, last = (_value_text(panel, point) for point in (points[0], points[-1]))
                ends.append(f"{line.name} from {first} to {last}")
        parts.append(f"Panel {panel.letter}, {panel.title}: {'; '.join(ends)}.")
    return " ".join(parts)


def _value_text(panel: Panel, point: PointSummary) -> str:
    return f"{point.error:.2f}" if panel.measure == "error" else f"{point.words_mean:,.0f} words"
