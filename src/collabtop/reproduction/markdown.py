"""The report as Markdown, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from collabtop.reproduction.experiments import FigurePlan
from collabtop.reproduction.figures import BARS, panel_points
from collabtop.reproduction.prices import NOTE, price_rows
from collabtop.reproduction.render import RenderedFigure
from collabtop.reproduction.report import Reproduction


def markdown_page(made: Reproduction, figures: Sequence[RenderedFigure]) -> str:
    """The whole report; the figures are the PNG files beside it."""
    lines = [
        "# Communication-efficient collaborative best arm identification, measured again",
        "",
        "The experiments and theorems of Karpov and Zhang (AAAI 2023).",
        "",
        "| # | the paper says | verdict |",
        "| --- | --- | --- |",
        *(f"| {one.name} | {one.says.replace('|', '/')} | {one.verdict} |" for one in made.statements),
        "",
        "## What came out, and why",
        "",
    ]
    for one in made.statements:
        lines += [f"### {one.name}: {one.verdict}", "", f"{one.says}.", ""]
        lines += [f"- {found}" for found in one.found]
        lines += ["", f"{one.why}.", ""]
    lines += ["## Figures", "", BARS, ""]
    for figure in figures:
        lines += [f"![{figure.caption}](figures/{figure.name}.png)", ""]
        lines += _prices(made) if figure.plan is None else _panels(figure.plan, made)
    lines += ["## Settings and machine", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in made.facts().items()]
    return "\n".join(lines) + "\n"


def _prices(made: Reproduction) -> list[str]:
    heads, *rows = price_rows(made.evidence)
    table = [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]
    return [NOTE, "", *table, ""]


def _panels(plan: FigurePlan, made: Reproduction) -> list[str]:
    lines = []
    for panel in plan.panels:
        rows = {line: panel_points(panel, line, made.evidence) for line in made.evidence.lines(panel.arms)}
        places = sorted({getattr(point, panel.against) for points in rows.values() for point in points})
        symbol = "T" if panel.against == "horizon" else "K"
        lines += [
            f"({panel.letter}) {panel.title}",
            "",
            f"| {symbol} | " + " | ".join(f"{place:,}" for place in places) + " |",
            "| --- |" + " --- |" * len(places),
        ]
        for line, points in rows.items():
            values = {getattr(point, panel.against): point for point in points}
            cells = [_cell(panel.measure, values.get(place)) for place in places]
            lines.append(f"| {line.name} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines


def _cell(measure: str, point: object) -> str:
    if point is None:
        return "-"
    value: float = getattr(point, "error" if measure == "error" else "words_mean")
    return f"{value:.2f}" if measure == "error" else f"{value:,.0f}"
