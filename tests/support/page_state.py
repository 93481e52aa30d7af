"""What the page does with the updates that it gets, in Python."""

from __future__ import annotations

from collabtop.watch.views import PATCHED, Sections


def apply(sections: Sections | None, update: Sections) -> Sections:
    """The page's view after an update: the inverse of `collabtop.watch.views.changes`."""
    updated = dict(sections or {})
    if "all" in update:
        updated, update = {}, update["all"]
    for name, part in update.items():
        if name == "clock":
            continue
        if name not in PATCHED:
            updated[name] = part
            continue
        columns = {key: list(values) for key, values in updated.get(name, {}).items()}
        for key, values in part["columns"].items():
            column = columns.setdefault(key, [])
            for row, value in zip(part["at"] or range(len(values)), values, strict=True):
                column[row : row + 1] = [value]
        updated[name] = columns
    return updated
