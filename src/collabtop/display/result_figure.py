"""A figure of one run: outcomes by round, estimates with their intervals, and words by round."""

import io

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from collabtop.display.result_table import ResultTable, TableRow
from collabtop.display.round_outcomes import MEANINGS, RoundOutcome, round_outcomes
from collabtop.display.save import METADATA
from collabtop.runs.result import Result
from collabtop.validation import counted

_COLOURS = {"kept": "#6baed6", "accepted": "#238b45", "rejected": "#d94801", "inside": "#bdbdbd"}
_SHOWN = 25
_LONGEST = 34


class ShownFigure(Figure):
    """A figure that notebooks show as a picture, without `%matplotlib inline`."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=100, metadata=METADATA["png"])
        return picture.getvalue()


def result_figure(result: Result) -> Figure:
    """Draw a run as a Matplotlib `Figure`, without pyplot, so no window opens.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1, 0.2])
    >>> figure = result_figure(ct.identify(arms, m=1, agents=2, horizon=400, algorithm="kzz", seed=1))
    >>> len(figure.axes)
    3
    """
    rows = [row for row in ResultTable(result).rows if row.mean is not None][:_SHOWN]
    figure = ShownFigure(figsize=(12, max(3.8, 0.22 * len(rows) + 1.2)), layout="constrained")
    FigureCanvasAgg(figure)
    outcomes, estimates, words = figure.subplots(1, 3, width_ratios=(1, 1.5, 1))
    _draw_outcomes(outcomes, round_outcomes(result))
    _draw_estimates(estimates, rows, result.n)
    _draw_words(words, result)
    for axes in (outcomes, words):
        axes.set_xlabel("round")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (outcomes, estimates, words):
        axes.spines[["top", "right"]].set_visible(False)
    team = counted(result.agents, "agent")
    title = f"best {result.m} of {result.n:,} by {result.algorithm}, {team}, {result.pulls:,} pulls"
    figure.suptitle(title, fontsize=10, color="0.35")
    return figure


def _draw_outcomes(axes: Axes, outcomes: list[RoundOutcome]) -> None:
    rounds, below = [outcome.round for outcome in outcomes], [0.0] * len(outcomes)
    for field, meaning in MEANINGS.items():
        heights = [float(getattr(outcome, field)) for outcome in outcomes]
        if any(heights):
            axes.bar(rounds, heights, bottom=below, color=_COLOURS[field], label=meaning)
        below = [base + height for base, height in zip(below, heights, strict=True)]
    axes.set_ylabel("candidates open at the start of the round")
    axes.set_title("Outcome of each round")
    if outcomes:
        axes.legend(frameon=False, fontsize=8)


def _draw_estimates(axes: Axes, rows: list[TableRow], n: int) -> None:
    for y, row in enumerate(rows):
        mean, colour = row.mean or 0.0, _COLOURS[row.verdict]
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [y, y], color=colour, linewidth=2, solid_capstyle="butt")
        axes.plot([mean], [y], "o" if row.verdict == "accepted" else "s", color=colour, markersize=4)
    axes.set_yticks(range(len(rows)), [_short(row.label) for row in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("mean reward with its 95% interval")
    subset = "" if len(rows) == n else f" ({len(rows)} of {n:,}, settled last)"
    axes.set_title(f"Estimates{subset}", fontsize=11)
    axes.grid(axis="x", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)


def _draw_words(axes: Axes, result: Result) -> None:
    axes.bar([r.round for r in result.rounds], [r.words for r in result.rounds], color="#6a51a3")
    axes.set_ylabel("words")
    axes.set_title(f"Words by round ({result.words:,} in total)", fontsize=11)


def _short(label: str) -> str:
    # Matplotlib would treat a dollar sign as the start of a formula.
    label = label.replace("$", r"\$")
    if len(label) <= _LONGEST:
        return label
    half = _LONGEST // 2  # labels with the same beginning often differ at the end
    return f"{label[: half - 1].rstrip()} … {label[-half:].lstrip()}"
