"""What the paper calls the algorithms."""

from __future__ import annotations

_PAPER = {
    "collab-top-iid": "CollabTopIID",
    "collab-top-noniid": "CollabTopNIID",
    "kzz": "KZZ",
    "kzz-balanced": "KZZ balanced",
    "uniform": "Uniform",
    "sar": "SAR",
}
_SCHEDULES = {"paper": "printed schedule", "full": "full schedule"}


def paper_name(algorithm: str, schedule: str | None = None) -> str:
    """An algorithm as the paper calls it, with its schedule where it has one.

    >>> paper_name("collab-top-iid", "paper"), paper_name("frugal-top-noniid")
    ('CollabTopIID, printed schedule', 'FrugalTopNIID')
    """
    name = _PAPER.get(algorithm)
    if name is None:
        name = "".join({"iid": "IID", "noniid": "NIID"}.get(part, part.capitalize()) for part in algorithm.split("-"))
    return name if schedule is None else f"{name}, {_SCHEDULES.get(schedule, schedule)}"
