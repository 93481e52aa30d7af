"""The legs of a run: a log that was extended holds several, each with a longer horizon than the one before."""

from collections.abc import Sequence

import msgspec

from collabtop.runlog.format import Extended, Header, Record


class Leg(msgspec.Struct, frozen=True):
    """One leg of a run: what it is, and its records."""

    header: Header
    records: list[Record]
    earlier: list[list[Record]]
    """The records of the legs before it."""

    def extended(self, extension: Extended) -> "Leg":
        """The next leg, which has no records yet."""
        return Leg(extended_header(self.header, extension), [], [*self.earlier, self.records])


def extended_header(header: Header, extension: Extended) -> Header:
    """The header of the leg that an extension begins."""
    return msgspec.structs.replace(
        header,
        horizon=extension.horizon,
        budget=extension.budget,
        numbered=extension.numbered,
        metered=False,  # what its plan leaves of a budget is not spent
        extensions=header.extensions + 1,
    )


def last_leg(records: Sequence[Record]) -> Leg | None:
    """The last leg in the records of a log, or None if there is none: the log does not begin with a header.

    >>> last_leg([]) is None
    True
    """
    if not records or not isinstance(records[0], Header):
        return None
    leg = Leg(records[0], [records[0]], [])
    for record in records[1:]:
        if isinstance(record, Extended):
            leg = leg.extended(record)
        leg.records.append(record)
    return leg
