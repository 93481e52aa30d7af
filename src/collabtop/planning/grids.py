"""Tables of plans, for a terminal and for a notebook."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.table import Table


class Grid(NamedTuple):
    """A table of texts; a column whose name begins with "<" is aligned to the left.

    >>> Grid("Prices", ("<name", "price"), [("tea", "3")], caption="in euros").html()
    '<p>Prices</p><table><tr><th>name</th><th>price</th></tr><tr><td>tea</td><td>3</td></tr></table><p>in euros</p>'
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    caption: str = ""

    def rich(self) -> Table:
        """The table for a terminal."""
        table = Table(title=self.title, caption=self.caption or None, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for column in self.columns:
            left = column.startswith("<")
            table.add_column(column.lstrip("<"), justify="left" if left else "right", no_wrap=column == "<algorithm")
        for row in self.rows:
            table.add_row(*row)
        return table

    def html(self) -> str:
        """The table for a notebook."""
        head = "".join(f"<th>{escape(column.lstrip('<'))}</th>" for column in self.columns)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows)
        caption = f"<p>{escape(self.caption)}</p>" if self.caption else ""
        return f"<p>{escape(self.title)}</p><table><tr>{head}</tr>{body}</table>{caption}"


def shown(number: float | str | None, digits: int = 0) -> str:
    """A number for a table, or "-"."""
    if number is None:
        return "-"
    return number if isinstance(number, str) else f"{number:,.{digits}f}"
