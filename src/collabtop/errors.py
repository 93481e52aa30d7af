"""Everything collabtop raises, drawn as a tree.

::

    CollabtopError
     +-- InputError (ValueError)       an argument, option or file is wrong: nothing was pulled
     |    +-- BudgetError              the budget cannot pay for the algorithm's first step
     |    +-- HorizonError             the horizon cannot pay for the algorithm's first step
     |    +-- SettingError             this algorithm does not work for these arms, agents or m
     |    +-- UnknownAlgorithmError    no algorithm has that name
     |    +-- FileError                a file is missing, unreadable or malformed
     +-- PullError (RuntimeError)      the user's own function failed or gave no reward in [0, 1]
     +-- AgentLostError (RuntimeError) an agent elsewhere was lost, and could not be rebuilt
     +-- CheckpointError (RuntimeError) a checkpoint could not be written; what is in it is whole
     +-- SiteError (RuntimeError)      a remote site is missing, gone, or was turned away; the log is whole
     |    +-- AgentsGoneError          agents are gone for good, and this step cannot do without them
     +-- StudyError (RuntimeError)     a study could not go on; run again, it resumes where it was
     +-- ProtocolError (RuntimeError)  agents and coordinator disagree: a defect, never the user's fault
"""

from __future__ import annotations

from typing import Any


class CollabtopError(Exception):
    """The base of all errors that collabtop raises on purpose."""


class InputError(CollabtopError, ValueError):
    """An argument, an option or a file is wrong; the message names it and says what would work."""


class HorizonError(InputError):
    """The horizon is too small; `smallest` is the first one that works."""

    def __init__(self, message: str, smallest: int) -> None:
        super().__init__(message)
        self.smallest = smallest

    def __reduce__(self) -> tuple[Any, ...]:  # what crosses between processes is made again from both
        return type(self), (str(self), self.smallest)


class BudgetError(InputError):
    """The budget is too small; `smallest` is what the smallest possible run may cost."""

    def __init__(self, message: str, smallest: float) -> None:
        super().__init__(message)
        self.smallest = smallest

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.smallest)


class SettingError(InputError):
    """The algorithm was not made for these arms, this many agents or this m."""


class UnknownAlgorithmError(InputError):
    """No algorithm is registered under that name."""


class FileError(InputError):
    """A file is missing, unreadable or malformed; the message gives file, line and what was found."""


class PullError(CollabtopError, RuntimeError):
    """A pull gave no reward; `candidate` is the label of the candidate that was tried."""

    def __init__(self, message: str, candidate: str) -> None:
        super().__init__(message)
        self.candidate = candidate

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.candidate)


class AgentLostError(CollabtopError, RuntimeError):
    """An agent that runs elsewhere was lost for good: `agent` is its number, `node` where it was."""

    def __init__(self, message: str, agent: int, node: str) -> None:
        super().__init__(message)
        self.agent, self.node = agent, node

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.agent, self.node)


class CheckpointError(CollabtopError, RuntimeError):
    """A checkpoint could not be written (a full disk); what is in it is whole, and the run can be resumed."""


class SiteError(CollabtopError, RuntimeError):
    """A site did not come, dropped off for good, declined or was turned away; the run can be resumed from its log."""


class AgentsGoneError(SiteError):
    """Agents are gone for good in the middle of a run that may go on without them; `agents` are their numbers."""

    def __init__(self, message: str, agents: frozenset[int]) -> None:
        super().__init__(message)
        self.agents = agents

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.agents)


class StudyError(CollabtopError, RuntimeError):
    """A study had to stop (a full disk, a process killed); run again, it resumes where it was."""


class ProtocolError(CollabtopError, RuntimeError):
    """A message came out of order, was not understood, or broke a law such as the horizon."""


def reason(error: OSError) -> str:
    """What the system says was wrong, in a few words.

    >>> reason(FileNotFoundError(2, "No such file or directory"))
    'no such file or directory'
    """
    return (error.strerror or str(error)).lower()
