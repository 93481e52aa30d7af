"""For tests that pass a value of the wrong type on purpose."""

from typing import Any


def untyped(value: object) -> Any:
    """Return the value, hidden from the type checker."""
    return value
