"""Figures on disk."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from collabtop.errors import FileError, InputError

if TYPE_CHECKING:  # Matplotlib takes longer to load than most commands to run
    from matplotlib.figure import Figure

_KINDS = (".png", ".svg", ".pdf")


def picture_path(path: str | PathLike[str]) -> Path:
    """Check a name for a picture before the work that leads to it is done.

    >>> picture_path("demo.png").suffix
    '.png'
    """
    path = Path(path)
    if path.suffix.lower() not in _KINDS:
        raise InputError(f"picture {str(path)!r} must end in {', '.join(_KINDS[:-1])} or {_KINDS[-1]}")
    if not path.parent.is_dir():
        raise FileError(f"{path}: there is no folder {str(path.parent)!r}")
    return path


def save_picture(figure: Figure, path: Path) -> None:
    """Write a figure; the same figure gives the same bytes."""
    undated = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    try:
        figure.savefig(path, dpi=150, metadata=undated[path.suffix.lower()])
    except OSError as error:
        raise FileError(f"{path}: {(error.strerror or str(error)).lower()}") from None
