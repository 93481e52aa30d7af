"""The report as Markdown."""

from collections.abc import Sequence

from collabtop.reproduction.experiments import FigurePlan
from collabtop.reproduction.figures import BARS, panel_points
from collabtop.reproduction.prices import NOTE, price_rows
from collabtop.reproduction.render import RenderedFigure
from collabtop.reproduction.report import SUBTITLE, TITLE, Reproduction
from collabtop.reproduction.verdicts import RULE, Statement


def markdown_page(report: Reproduction, figures: Sequence[RenderedFigure]) -> str:
    """The whole report; it links to the PNG files of the figures."""
    lines = [
        f"# {TITLE}",
        "",
        f"{SUBTITLE}.",
        "",
        f"{RULE}.",
        "",
        "| # | statement of the paper | verdict |",
        "| --- | --- | --- |",
        *(f"| {s.name} | {s.says.replace('|', '/')} | {_verdict(s)} |" for s in report.statements),
        "",
        "## Results and criteria",
        "",
    ]
    for statement in report.statements:
        lines += [f"### {statement.name}: {statement.verdict}", "", f"{statement.says}.", ""]
        if statement.findings:
            lines += [*(f"- {finding}" for finding in statement.findings), ""]
        lines += [f"{statement.why}.", ""]
    lines += ["## Figures", "", BARS, ""]
    for figure in figures:
        lines += [f"![{figure.caption}](figures/{figure.name}.png)", ""]
        lines += _prices(report) if figure.plan is None else _panels(figure.plan, report)
    lines += ["## Settings and machine", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in report.facts().items()]
    return "\n".join(lines) + "\n"


def _verdict(statement: Statement) -> str:
    return f"{statement.verdict}. By count: {statement.headline}" if statement.headline else statement.verdict


def _prices(report: Reproduction) -> list[str]:
    header, *rows = price_rows(report.evidence)
    table = [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]
    return [NOTE, "", *table, ""]


def _panels(plan: FigurePlan, report: Reproduction) -> list[str]:
    lines = []
    for panel in plan.panels:
        rows = {line: panel_points(panel, line, report.evidence) for line in report.evidence.lines(panel.arms)}
        positions = sorted({getattr(point, panel.against) for points in rows.values() for point in points})
        symbol = "T" if panel.against == "horizon" else "K"
        lines += [
            f"({panel.letter}) {panel.title}",
            "",
            f"| {symbol} | " + " | ".join(f"{position:,}" for position in positions) + " |",
            "| --- |" + " --- |" * len(positions),
        ]
        for line, points in rows.items():
            values = {getattr(point, panel.against): point for point in points}
            cells = [_cell(panel.measure, values.get(position)) for position in positions]
            lines.append(f"| {line.name} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines


def _cell(measure: str, point: object) -> str:
    if point is None:
        return "-"
    value: float = getattr(point, "error" if measure == "error" else "words_mean")
    return f"{value:.2f}" if measure == "error" else f"{value:,.0f}"
