"""A figure of live arms and words by round, with one line per run."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from collabtop.display.round_outcomes import RoundOutcome, round_outcomes
from collabtop.runs.result import Result
from collabtop.validation import counted

# Every style has its own marker, dashes and size, so that lines can be distinguished in greyscale, by colour-blind
# readers, and where two lines coincide.
_STYLES: tuple[dict[str, Any], ...] = (
    {
        "color": "#2171b5",
        "marker": "o",
        "linestyle": "-",
        "linewidth": 2.6,
        "markersize": 9,
        "markerfacecolor": "white",
    },
    {"color": "#a63603", "marker": "s", "linestyle": "--", "linewidth": 1.4, "markersize": 4},
    {"color": "#238b45", "marker": "^", "linestyle": "-.", "linewidth": 1.4, "markersize": 6},
    {"color": "#54278f", "marker": "D", "linestyle": ":", "linewidth": 1.4, "markersize": 4},
)
_TEXT: dict[str, Any] = {"fontsize": 9}
_FEW_WORDS = 100


def live_arms_figure(results: Sequence[Result]) -> Figure:
    """Draw the live arms and the words sent by round, for one or several runs.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1, 0.2])
    >>> result = ct.identify(arms, m=1, agents=2, horizon=400, seed=1)
    >>> live_arms_figure([result]).savefig("live-arms.png")                             # doctest: +SKIP
    """
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    live, words = figure.subplots(1, 2)
    for number, result in enumerate(results):
        outcomes, style = round_outcomes(result), _STYLES[number % len(_STYLES)]
        _draw_live(live, result, outcomes, style)
        _draw_words(words, result, outcomes, style)
    _finish_live(live, results)
    _finish_words(words, max((result.words for result in results), default=1))
    for axes in (live, words):
        _tidy(axes)
    figure.suptitle(_setting(results), fontsize=10, color="0.35")
    return figure


def _setting(results: Sequence[Result]) -> str:
    """The setting of the runs, or an empty text if they have different settings."""
    settings = {(result.m, result.n, result.agents, result.horizon) for result in results}
    if len(settings) != 1:
        return ""
    m, n, agents, horizon = settings.pop()
    return f"best {m} of {n:,} arms, {counted(agents, 'agent')}, {horizon:,} time steps"


def _draw_live(axes: Axes, result: Result, outcomes: list[RoundOutcome], style: dict[str, Any]) -> None:
    counts = [result.n, *(outcome.kept for outcome in outcomes)]
    local = sum(outcome.phase == "local" for outcome in outcomes)
    inside = f" ({local} {'round' if local == 1 else 'rounds'} inside agents)" if local else ""
    axes.plot(range(len(counts)), counts, label=result.algorithm + inside, clip_on=False, **style)


def _draw_words(axes: Axes, result: Result, outcomes: list[RoundOutcome], style: dict[str, Any]) -> None:
    totals = list(accumulate((outcome.words for outcome in outcomes), initial=0))
    axes.plot(range(len(totals)), totals, label=result.algorithm, clip_on=False, **style)
    axes.annotate(
        f"{result.algorithm}: {totals[-1]:,} words",
        (len(totals) - 1, totals[-1]),
        xytext=(0, 9),
        textcoords="offset points",
        ha="right",
        color=style["color"],
        **_TEXT,
    )


def _finish_live(axes: Axes, results: Sequence[Result]) -> None:
    axes.set_yscale("symlog", linthresh=1)  # a log scale that includes 0, where no arm is left
    ticks = [0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]
    most = max((result.n for result in results), default=1)
    axes.set_yticks([tick for tick in ticks if tick <= most])
    axes.set_ylim(0, 1.3 * most)
    axes.yaxis.set_major_formatter(_thousands())
    axes.set_ylabel("live arms (log scale down to 1)")
    axes.set_title("Arms still open")
    axes.legend(loc="upper right", frameon=False, fontsize=9)


def _finish_words(axes: Axes, most: int) -> None:
    axes.set_yscale("symlog", linthresh=_FEW_WORDS)  # a log scale that includes 0, where every run begins
    axes.set_yticks([tick for tick in (0, *(10**power for power in range(2, 13))) if tick <= 2 * most])
    axes.set_ylim(0, max(3 * most, _FEW_WORDS))  # with room for the labels above the lines
    axes.yaxis.set_major_formatter(_thousands())
    axes.set_ylabel(f"words so far (log scale down to {_FEW_WORDS})")
    axes.set_title("Communication")


def _tidy(axes: Axes) -> None:
    axes.set_xlabel("rounds finished")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)


def _thousands() -> FuncFormatter:
    return FuncFormatter(lambda value, _: f"{value:,.0f}")
