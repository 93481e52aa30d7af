"""The report as one HTML page that opens offline: everything it needs is in it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

from collabtop.reproduction.evidence import Evidence
from collabtop.reproduction.experiments import FigurePlan
from collabtop.reproduction.figures import BARS, panel_points
from collabtop.reproduction.prices import NOTE, price_rows
from collabtop.reproduction.render import RenderedFigure
from collabtop.reproduction.report import Reproduction
from collabtop.reproduction.verdicts import Statement

_CSS = """
:root { color-scheme: light dark; --text: #1b1b1f; --faint: #5b5b66; --back: #ffffff; --soft: #f4f4f7;
  --line: #d9d9e0; --good: #0b6b3a; --bad: #a3260f; --open: #6a5200; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8ee; --faint: #a9a9b6; --back: #16161a; --soft: #212127;
  --line: #3a3a44; --good: #6fd49b; --bad: #ff9a85; --open: #e6c35c; } }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { margin-top: 2.5rem; font-size: 1.25rem; }
p.lead, figcaption, .why { color: var(--faint); }
figure { margin: 1.5rem 0; } figure img { width: 100%; height: auto; background: #ffffff; border-radius: 4px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid var(--line); } td.number { text-align: right; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--faint); padding-bottom: .4rem; }
td ul { margin: 0; padding-left: 1.1rem; } .verdict { font-weight: 600; white-space: nowrap; }
.holds { color: var(--good); } .does-not-hold { color: var(--bad); } .undecided { color: var(--open); }
details { margin: .5rem 0 1.5rem; } summary { cursor: pointer; }
@media print { body { max-width: none; padding: 0; font-size: 9.5pt; } figure, tr { break-inside: avoid; }
  details:not([open]) { display: none; } }
"""
_MARKS = {"holds": "✓", "does not hold": "✗", "undecided": "?"}


def html_page(made: Reproduction, figures: Sequence[RenderedFigure]) -> str:
    """The whole report; figures are inside it as SVG."""
    counts = ", ".join(f"{sum(one.verdict == verdict for one in made.statements)} {verdict}" for verdict in _MARKS)
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Reproduction report</title>\n<style>{_CSS}</style>\n</head>\n<body>",
            "<header>\n<h1>Communication-efficient collaborative best arm identification, measured again</h1>",
            '<p class="lead">The experiments and theorems of Karpov and Zhang (AAAI 2023). '
            f"Of {len(made.statements)} statements: {escape(counts)}.</p>\n</header>\n<main>",
            "<section>\n<h2>What the paper says, and what came out</h2>",
            _statements(made.statements),
            "</section>\n<section>\n<h2>Figures</h2>",
            f"<p>{escape(BARS)}</p>",
            *(_figure(figure, made.evidence) for figure in figures),
            "</section>\n<section>\n<h2>Settings and machine</h2>",
            _facts(made),
            "</section>\n</main>\n</body>\n</html>\n",
        ]
    )


def _statements(statements: Sequence[Statement]) -> str:
    rows = []
    for one in statements:
        found = "".join(f"<li>{escape(line)}</li>" for line in one.found)
        kind = one.verdict.replace(" ", "-")
        rows.append(
            f'<tr id="{escape(one.name)}"><th scope="row">{escape(one.name)}</th><td>{escape(one.says)}</td>'
            f'<td class="verdict {kind}"><span aria-hidden="true">{_MARKS[one.verdict]} </span>{escape(one.verdict)}'
            f'</td><td>{f"<ul>{found}</ul>" if found else "-"}<p class="why">{escape(one.why)}.</p></td></tr>'
        )
    heads = "".join(
        f'<th scope="col">{name}</th>' for name in ("", "The paper says", "Verdict", "What came out, and why")
    )
    return (
        f'<div class="scroll"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table></div>"
    )


def _figure(figure: RenderedFigure, evidence: Evidence) -> str:
    data = base64.b64encode(figure.files["svg"]).decode()
    return (
        f'<figure>\n<img alt="{escape(figure.description)}" src="data:image/svg+xml;base64,{data}">\n'
        f"<figcaption>{escape(figure.caption)}</figcaption>\n</figure>\n"
        + (_prices(evidence) if figure.plan is None else _points(figure.plan, evidence))
    )


def _prices(evidence: Evidence) -> str:
    heads, *rows = price_rows(evidence)
    body = [f'<tr><th scope="row">{escape(row[0])}</th>{_cells(row[1:])}</tr>' for row in rows]
    return f"<p>{escape(NOTE)}</p>\n" + _table("What error .01 takes, as a table", heads, body)


def _cells(row: Sequence[str]) -> str:
    return "".join(f'<td class="number">{escape(cell)}</td>' for cell in row)


def _table(summary: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    shown = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        f"<details><summary>{summary}</summary>\n"
        f'<div class="scroll"><table><thead><tr>{shown}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table></div></details>"
    )


def _points(plan: FigurePlan, evidence: Evidence) -> str:
    """The figure's points in figures: each once, though two panels show it."""
    points = {
        (line.name, point.agents, point.horizon): point
        for panel in plan.panels
        for line in evidence.lines(panel.arms)
        for point in panel_points(panel, line, evidence)
    }
    rows = []
    for (name, agents, horizon), point in points.items():
        cells = (
            f"{agents:,}",
            f"{horizon:,}",
            f"{point.runs:,}",
            f"{point.error:.3f}",
            f"{point.error_low:.3f} to {point.error_high:.3f}",
            f"{point.words_mean:,.0f} ± {point.words_sd:,.0f}",
            f"{point.bits_mean:,.0f}",
            f"{point.round_trips_mean:,.1f}",
            f"{point.time_mean:,.0f}",
        )
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{_cells(cells)}</tr>')
    names = ("algorithm", "K", "T", "runs", "error", "95% interval", "words", "bits", "round trips", "time used")
    return _table(f"The {len(rows)} points of figure {plan.number} as a table", names, rows)


def _facts(made: Reproduction) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(str(value))}</td></tr>'
        for name, value in made.facts().items()
    )
    return f"<table><tbody>\n{rows}\n</tbody></table>"
