"""The report as one self-contained HTML page that opens offline."""

import base64
import re
from collections.abc import Sequence
from html import escape

from collabtop.reproduction.evidence import Evidence
from collabtop.reproduction.experiments import FigurePlan
from collabtop.reproduction.figures import BARS, panel_points
from collabtop.reproduction.prices import NOTE, price_rows
from collabtop.reproduction.render import RenderedFigure
from collabtop.reproduction.report import SUBTITLE, TITLE, Reproduction
from collabtop.reproduction.verdicts import RULE, Statement, Verdict

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
tbody th { white-space: nowrap; }
td ul { margin: 0; padding-left: 1.1rem; } .verdict { font-weight: 600; white-space: nowrap; }
.verdict p { font-weight: 400; white-space: normal; margin: .3rem 0 0; max-width: 11rem; }
.supported, .not-contradicted { color: var(--good); } .contradicted { color: var(--bad); }
.undecided { color: var(--open); } .verdict p { color: var(--text); }
details { margin: .5rem 0 1.5rem; } summary { cursor: pointer; }
@media print { body { max-width: none; padding: 0; font-size: 9.5pt; } figure, tr { break-inside: avoid; }
  details:not([open]) { display: none; } }
"""
_MARKS: dict[Verdict, str] = {"supported": "✓", "not contradicted": "○", "contradicted": "✗", "undecided": "?"}


def html_page(report: Reproduction, figures: Sequence[RenderedFigure]) -> str:
    """The whole report, with the figures embedded as SVG."""
    verdicts = [statement.verdict for statement in report.statements]
    counts = ", ".join(f"{verdict} ({verdicts.count(verdict)})" for verdict in _MARKS)
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Reproduction report</title>\n<style>{_CSS}</style>\n</head>\n<body>",
            f"<header>\n<h1>{TITLE}</h1>",
            f'<p class="lead">{SUBTITLE}. Verdicts on {len(verdicts)} statements: {escape(counts)}.</p>',
            "</header>\n<main>",
            "<section>\n<h2>Statements of the paper</h2>",
            f"<p>{escape(RULE)}.</p>",
            _statements(report.statements),
            "</section>\n<section>\n<h2>Figures</h2>",
            f"<p>{escape(BARS)}</p>",
            *(_figure(figure, report.evidence) for figure in figures),
            "</section>\n<section>\n<h2>Settings and machine</h2>",
            _facts(report),
            "</section>\n</main>\n</body>\n</html>\n",
        ]
    )


def _statements(statements: Sequence[Statement]) -> str:
    rows = []
    for statement in statements:
        name, verdict = escape(statement.name), escape(statement.verdict)
        headline = f"<p>{escape(statement.headline)}</p>" if statement.headline else ""
        findings = "".join(f"<li>{escape(finding)}</li>" for finding in statement.findings)
        rows.append(
            f'<tr id="{slug(statement.name)}"><th scope="row">{name}</th><td>{escape(statement.says)}</td>'
            f'<td class="verdict {verdict.replace(" ", "-")}"><span aria-hidden="true">{_MARKS[statement.verdict]} '
            f"</span>{verdict}{headline}</td>"
            f'<td>{f"<ul>{findings}</ul>" if findings else "-"}<p class="why">{escape(statement.why)}.</p></td></tr>'
        )
    return _table(("", "Statement", "Verdict", "Results and criteria"), rows)


def slug(name: str) -> str:
    """The name of a statement as the id of its row.

    >>> slug("C1 (m = 8)")
    'C1-m8'
    """
    return re.sub(r"[ (]+", "-", re.sub(r" = |\)", "", name))


def _figure(figure: RenderedFigure, evidence: Evidence) -> str:
    data = base64.b64encode(figure.files["svg"]).decode()
    return (
        f'<figure>\n<img alt="{escape(figure.description)}" src="data:image/svg+xml;base64,{data}">\n'
        f"<figcaption>{escape(figure.caption)}</figcaption>\n</figure>\n"
        + (_prices(evidence) if figure.plan is None else _points(figure.plan, evidence))
    )


def _prices(evidence: Evidence) -> str:
    header, *rows = price_rows(evidence)
    body = [_row(name, cells) for name, *cells in rows]
    return f"<p>{escape(NOTE)}</p>\n" + _details("Cost of error .01 as a table", header, body)


def _row(name: str, cells: Sequence[str]) -> str:
    numbers = "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
    return f'<tr><th scope="row">{escape(name)}</th>{numbers}</tr>'


def _details(summary: str, header: Sequence[str], rows: Sequence[str]) -> str:
    return f"<details><summary>{summary}</summary>\n{_table(header, rows)}</details>"


def _table(header: Sequence[str], rows: Sequence[str]) -> str:
    names = "".join(f'<th scope="col">{name}</th>' for name in header)
    return (
        f'<div class="scroll"><table><thead><tr>{names}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table></div>"
    )


def _points(plan: FigurePlan, evidence: Evidence) -> str:
    """The points of a figure as a table, each once even if two panels show it."""
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
        rows.append(_row(name, cells))
    header = ("algorithm", "K", "T", "runs", "error", "95% interval", "words", "bits", "round trips", "time used")
    return _details(f"The {len(rows)} points of figure {plan.number} as a table", header, rows)


def _facts(report: Reproduction) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(str(value))}</td></tr>'
        for name, value in report.facts().items()
    )
    return f"<table><tbody>\n{rows}\n</tbody></table>"
