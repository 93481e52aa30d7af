"""Saving figures to files."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from collabtop.errors import FileError, InputError, reason

if TYPE_CHECKING:  # Matplotlib takes longer to import than most commands take to run
    from matplotlib.figure import Figure

METADATA: dict[str, dict[str, None]] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""Metadata by format: without dates and versions, the same figure gives the same bytes."""


def figure_path(path: str | PathLike[str]) -> Path:
    """Check the path of a figure before the runs that it shows are made.

    >>> figure_path("demo.png").suffix
    '.png'
    """
    path = Path(path)
    if _format(path) not in METADATA:
        raise InputError(
            f"the figure file is {str(path)!r}, but a name that ends in .png, .svg or .pdf is needed", argument="path"
        )
    if not path.parent.is_dir():
        raise FileError(f"{path}: there is no folder {str(path.parent)!r}")
    return path


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the path ends with; the same figure gives the same bytes."""
    try:
        figure.savefig(path, dpi=150, metadata=METADATA[_format(path)])
    except OSError as error:
        raise FileError(f"{path}: {reason(error)}") from None


def _format(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")
