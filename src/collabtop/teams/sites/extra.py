"""What to say when the extra that sites need is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from collabtop.errors import InputError


@contextmanager
def needs_sites_extra() -> Iterator[None]:
    """Turn a failing import of gRPC or of cryptography into one line that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("grpc", "cryptography"):
            raise
        raise InputError(f"agents at remote sites need {error.name}: pip install 'collabtop[sites]'") from None
