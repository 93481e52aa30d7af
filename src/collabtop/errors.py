"""Everything collabtop raises, drawn as a tree.

::

    CollabtopError
     +-- InputError (ValueError)       an argument, option or file is wrong: nothing was pulled
     |    +-- BudgetError              the budget cannot pay for the algorithm's first step
     |    +-- HorizonError             the horizon cannot pay for the algorithm's first step
     |    +-- SettingError             this algorithm does not work for these arms, agents or m
     |    +-- UnknownAlgorithmError    no algorithm has that name
     |    +-- FileError                a file is missing, unreadable or malformed
     +-- PullError (RuntimeError)      the user's own function failed or returned no valid reward
     +-- AgentLostError (RuntimeError) an agent elsewhere was lost and could not be restored
     +-- CheckpointError (RuntimeError) a checkpoint could not be written; what it holds is intact
     +-- SiteError (RuntimeError)      a remote site is missing, lost or was rejected; the log is intact
     |    +-- AgentsGoneError          agents are lost for good, and this step cannot do without them
     +-- StudyError (RuntimeError)     a study had to stop; run it again to resume it
     +-- ProtocolError (RuntimeError)  agents and coordinator disagree: a defect, never the user's fault
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

Fields = dict[str, str | int | float | list[int] | None]
"""What an error carries besides its message, as plain data."""


class CollabtopError(Exception):
    """The base of all errors that collabtop raises on purpose."""

    field_types: ClassVar[dict[str, Any]] = {}
    """The attributes that its constructor takes after the message, with their types as plain data."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Not by the constructor, as pickle would: those of subclasses take different arguments.
        return _unpickled, (type(self), self.args), vars(self)


class InputError(CollabtopError, ValueError):
    """An argument, an option or a file is wrong; the message names it and states what would work.

    `argument` is the name of the Python argument or option that is wrong, or None if no single one is.
    """

    field_types: ClassVar = {"argument": str | None}

    def __init__(self, message: str, *, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class HorizonError(InputError):
    """The horizon is too small; `smallest` is the first one that works."""

    field_types: ClassVar = {"smallest": int, **InputError.field_types}

    def __init__(self, message: str, smallest: int, *, argument: str | None = "horizon") -> None:
        super().__init__(message, argument=argument)
        self.smallest = int(smallest)


class BudgetError(InputError):
    """The budget is too small; `smallest` is what the smallest possible run may cost."""

    field_types: ClassVar = {"smallest": float, **InputError.field_types}

    def __init__(self, message: str, smallest: float, *, argument: str | None = "budget") -> None:
        super().__init__(message, argument=argument)
        self.smallest = float(smallest)


class SettingError(InputError):
    """The algorithm does not work for these arms, this many agents or this m."""


class UnknownAlgorithmError(InputError):
    """No algorithm is registered under that name."""

    def __init__(self, message: str, *, argument: str | None = "algorithm") -> None:
        super().__init__(message, argument=argument)


class FileError(InputError):
    """A file is missing, unreadable or malformed; the message names the file, the line and what is wrong there."""


class PullError(CollabtopError, RuntimeError):
    """A pull gave no reward; `candidate` is the label of the candidate that was tried."""

    field_types: ClassVar = {"candidate": str}

    def __init__(self, message: str, candidate: str) -> None:
        super().__init__(message)
        self.candidate = candidate


class AgentLostError(CollabtopError, RuntimeError):
    """An agent that ran elsewhere was lost for good: `agent` is its number, `node` where it ran."""

    field_types: ClassVar = {"agent": int, "node": str}

    def __init__(self, message: str, agent: int, node: str) -> None:
        super().__init__(message)
        self.agent, self.node = agent, node


class CheckpointError(CollabtopError, RuntimeError):
    """A checkpoint could not be written (a full disk); what it holds is intact, and the run can be resumed."""


class SiteError(CollabtopError, RuntimeError):
    """A site did not connect, was lost for good, declined or was rejected; the run can be resumed from its log."""


class AgentsGoneError(SiteError):
    """Agents were lost for good during a run that may continue without them; `agents` are their numbers."""

    field_types: ClassVar = {"agents": list[int]}

    def __init__(self, message: str, agents: Iterable[int]) -> None:
        super().__init__(message)
        self.agents = frozenset(map(int, agents))


class StudyError(CollabtopError, RuntimeError):
    """A study had to stop (a full disk, a killed process); run it again to resume it."""


class ProtocolError(CollabtopError, RuntimeError):
    """A message came out of order, was not understood, or broke a law such as the horizon."""


_CLASSES = {
    kind.__name__: kind for kind in list(vars().values()) if isinstance(kind, type) and issubclass(kind, CollabtopError)
}


def error_fields(error: CollabtopError) -> tuple[str, Fields]:
    """An error as plain data that can cross a network: the name of its class, or the nearest one here, and its fields.

    >>> error_fields(HorizonError("horizon is 3, but at least 8 is needed", smallest=8))
    ('HorizonError', {'smallest': 8, 'argument': 'horizon'})
    """
    kind = next(kind for kind in type(error).__mro__ if kind in _CLASSES.values())
    values = {name: getattr(error, name) for name in _CLASSES[kind.__name__].field_types}
    return kind.__name__, msgspec.to_builtins(values)


def rebuild_error(name: str, message: str, fields: Mapping[str, Any]) -> CollabtopError:
    """The error that `error_fields` described; anything else is a `ProtocolError`.

    >>> rebuild_error("HorizonError", "horizon is 3, but at least 8 is needed", {"smallest": 8, "argument": "horizon"})
    HorizonError('horizon is 3, but at least 8 is needed')
    """
    kind = _CLASSES.get(name)
    if kind is None or fields.keys() != kind.field_types.keys():
        raise ProtocolError(f"there is no {name} with the fields {sorted(fields)}")
    try:
        values = {field: msgspec.convert(fields[field], type_) for field, type_ in kind.field_types.items()}
    except msgspec.ValidationError as error:
        raise ProtocolError(f"there is no {name} with the fields {dict(fields)!r:.80}: {error}") from None
    return kind(message, **values)


def _unpickled(kind: type[CollabtopError], args: tuple[Any, ...]) -> CollabtopError:
    return kind.__new__(kind, *args)


def reason(error: OSError) -> str:
    """What the operating system reports, in lower case.

    >>> reason(FileNotFoundError(2, "No such file or directory"))
    'no such file or directory'
    """
    return (error.strerror or str(error)).lower()
