"""Agent extensions: messages of your own, and what agents do with them."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import reduce
from operator import is_, or_
from types import UnionType
from typing import Any, ClassVar, Protocol, TypeVar, Union, get_args, get_origin

import msgspec
import numpy as np

from collabtop.errors import InputError, ProtocolError
from collabtop.problem import Problem
from collabtop.protocol.ledger import check_fields
from collabtop.protocol.messages import Ints, Message, Reals, kind_of

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


class AgentAccess(Protocol):
    """What an extension can use of its agent."""

    number: int
    """The agent's number, from 0 on."""

    @property
    def problem(self) -> Problem:
        """The n, m, K and T of the run."""

    @property
    def rng(self) -> np.random.Generator:
        """The agent's source of randomness."""

    def pull(self, arms: Ints, times: Ints, starts: Ints | int = 0) -> Reals:
        """Pull each of `arms` `times` times, and return the sums; `times` has one number per arm, or one for all.

        For paired arms, `starts` are the numbers of the first pulls: the pulls of each arm so far, by all agents.
        """


class AgentExtension(ABC):
    """What agents do with messages of your own. Each agent of a run makes one instance, which may keep private state.

    A subclass declares `name` and `messages` and implements `handle`. The kind of each message, its `tag`, is the name
    of the extension, a point, and a word. The other methods are for sites, which check every message.

    >>> import numpy as np
    >>> class Toss(Message, frozen=True, tag="toss.Toss"):
    ...     times: int
    >>> class Heads(Message, frozen=True, tag="toss.Heads"):
    ...     count: int
    >>> @register_extension
    ... class Tossing(AgentExtension):
    ...     name = "toss"
    ...     messages = {Toss: Heads}
    ...
    ...     def handle(self, message):
    ...         return Heads(int(self.agent.pull(np.array([0]), np.array([message.times]))[0]))
    >>> from collabtop.protocol.wire import decode, encode
    >>> decode(encode(Toss(5)))
    Toss(times=5)
    """

    name: ClassVar[str]
    """The name of the extension, such as `local-best`."""
    messages: ClassVar[Mapping[type[Message], type[Message] | None]]
    """The requests that agents can handle, each with its answer, or None if it travels with the next question."""

    def __init__(self, agent: AgentAccess) -> None:
        self.agent = agent
        """The agent: its number, problem, randomness and pulls."""

    @abstractmethod
    def handle(self, message: Any) -> Message | None:
        """Do what a request asks, and return its answer, or None if it has none."""

    # -- what sites check

    @classmethod  # noqa: B027  (types are checked anyway)
    def check(cls, message: Any, problem: Problem) -> None:
        """Raise `ProtocolError` if a request cannot be right; a site calls this before its agent sees the request."""

    @classmethod  # noqa: B027
    def check_answer(cls, message: Any, answer: Any, problem: Problem) -> None:
        """Raise `ProtocolError` if no honest agent gives this answer; both sides call this."""

    @classmethod
    def most_pulls(cls, message: Any, problem: Problem) -> int:
        """The most pulls that an agent makes for a request."""
        return problem.horizon

    @classmethod
    def smallest_batch(cls, message: Any) -> int | None:
        """The fewest new pulls behind a number in the answer; None if the answer has no number from new pulls.

        Sites that were started with a larger `min_batch` refuse the request. By default this is 1: unless you
        override it, sites with `min_batch` above 1 refuse.
        """
        return 1


_Extension = TypeVar("_Extension", bound=type[AgentExtension])


def register_extension(extension: _Extension) -> _Extension:
    """Make agents and sites of this process understand the messages of an extension; a class decorator.

    Raises:
        InputError: the name or a tag is wrong, or taken, or a message has a field that cannot be counted.
    """
    name = getattr(extension, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"{extension.__name__}.name is {name!r}, but up to 40 lower-case letters, digits and hyphens are needed",
            argument="name",
        )
    known = _extensions.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (extension.__module__, extension.__qualname__):
        raise InputError(f"name is {name!r}, but {known.__qualname__} has that name already", argument="name")
    answers = {answer for answer in extension.messages.values() if answer is not None}
    tags = [kind_of(kind) for kind in {*extension.messages, *answers}]
    for tag in tags:
        if not re.fullmatch(rf"{name}\.\w+", tag, re.ASCII):
            raise InputError(
                f"the tag of a message of {extension.__name__} is {tag!r}, but '{name}.' and a word are needed",
                argument="messages",
            )
    for kind in {*extension.messages, *answers}:
        resolve_aliases(kind)
        try:
            check_fields(kind)
        except ProtocolError as error:
            raise InputError(str(error), argument="messages") from None
    if len(set(tags)) < len(tags):
        raise InputError(f"two messages of {extension.__name__} have the same tag", argument="messages")
    _extensions[name] = extension
    return extension


def resolve_aliases(kind: type[Message]) -> None:
    """Replace aliases in the fields of a message class by the types that they stand for.

    From NumPy 2.5 on, `NDArray[...]` is an alias of its own kind, which hides that it is an array from msgspec.
    """
    types = {field.name: (field.type, _without_alias(field.type)) for field in msgspec.structs.fields(kind)}
    resolved = {name: plain for name, (given, plain) in types.items() if plain is not given}
    if resolved:  # msgspec reads them when a message is decoded first
        kind.__annotations__ = {**vars(kind).get("__annotations__", {}), **resolved}


def _without_alias(type_: Any) -> Any:
    origin = get_origin(type_)
    if origin in (Union, UnionType):
        parts = [_without_alias(part) for part in get_args(type_)]
        return type_ if all(map(is_, parts, get_args(type_))) else reduce(or_, parts)
    if hasattr(origin, "__value__"):
        return _without_alias(origin.__value__[get_args(type_)])
    return _without_alias(type_.__value__) if hasattr(type_, "__value__") else type_


def registered_extensions() -> dict[str, type[AgentExtension]]:
    """The extensions of this process, by name."""
    return dict(_extensions)


def extension_of(message: type[Message]) -> type[AgentExtension] | None:
    """The registered extension that handles a kind of request, or None."""
    if not _extensions:
        return None
    extension = _extensions.get(kind_of(message).partition(".")[0])
    return extension if extension is not None and message in extension.messages else None


def extension_messages() -> list[type[Message]]:
    """The requests and answers of all registered extensions."""
    return [
        kind
        for extension in _extensions.values()
        for pair in extension.messages.items()
        for kind in pair
        if kind is not None
    ]


def module_of(name: str) -> str:
    """The module that a process has to import to register an extension; "" for no extension.

    Raises:
        InputError: the extension is not registered, or it is defined in the main script.
    """
    if not name:
        return ""
    extension = _extensions.get(name)
    if extension is None:
        raise InputError(f"the extension {name!r} is not registered: use register_extension", argument="algorithm")
    if extension.__module__ == "__main__":
        raise InputError(
            f"the extension {name!r} is defined in the main script, but agents in other processes import it: move "
            f"{extension.__qualname__} to a module",
            argument="algorithm",
        )
    return extension.__module__


def is_extension_name(name: str) -> bool:
    """Whether a text has the form of an extension's name, and is safe to print.

    >>> is_extension_name("local-best"), is_extension_name("Local Best!")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None


_extensions: dict[str, type[AgentExtension]] = {}
