"""Results as text: intervals, labels of unknown origin, and what Rich shows."""

import re

from rich.console import Console, RenderableType
from rich.markup import escape

from collabtop.arms.unit import Unit

EVIDENCE = {True: "thin", False: "", None: "unknown"}
"""What tables show for `Standing.thin`."""


def interval_text(low: float | None, high: float | None, unit: Unit) -> str:
    """An interval in the user's unit as text.

    >>> interval_text(0.25, 0.5, Unit()), interval_text(0.25, 0.25, Unit()), interval_text(None, None, Unit())
    ('0.2500 to 0.5000', 'exact', '-')
    """
    if low is None or high is None:
        return "-"
    return "exact" if low == high else f"{unit.text(low)} to {unit.text(high)}"


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters with which a text could control a terminal or reverse its own direction; not the tab and the newline."""


def printable(text: str, *, markup: bool = True) -> str:
    r"""A text of unknown origin, such as a label, for a terminal: control characters are shown as escapes.

    With `markup`, it is prepared for Rich, which would interpret square brackets.

    >>> print(printable("\x1b[2J red", markup=False))
    \x1b[2J red
    """
    text = _CONTROLS.sub(lambda control: control[0].encode("unicode_escape").decode(), text)
    return escape(text) if markup else text


def plain_text(renderable: RenderableType, *, width: int) -> str:
    """What Rich shows, as text of this width."""
    console = Console(width=width, force_terminal=False, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get().rstrip()
