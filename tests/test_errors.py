"""The tree of errors is the one that is drawn, and every error survives the way from one process to another."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

import collabtop as ct
from collabtop import errors
from collabtop.errors import CollabtopError, ProtocolError, rebuild_error
from collabtop.teams.remote.host_messages import Fault, fault_of

TREE = {
    "CollabtopError": Exception,
    "InputError": ct.CollabtopError,
    "HorizonError": ct.InputError,
    "SettingError": ct.InputError,
    "UnknownAlgorithmError": ct.InputError,
    "FileError": ct.InputError,
    "PullError": ct.CollabtopError,
    "ProtocolError": ct.CollabtopError,
}
ALL = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}

EXAMPLES: dict[Any, Any] = {int: 7, float: 7.5, str: "b", str | None: "m", Iterable[int]: [3, 1]}


def example_of(kind: type[CollabtopError]) -> CollabtopError:
    """An error of this class with a value for each field of its constructor."""
    parameters = inspect.signature(kind.__init__).parameters.values()
    fields = [one for one in parameters if one.name not in ("self", "message", "args", "kwargs")]
    return kind("what happened", **{field.name: EXAMPLES[field.annotation] for field in fields})


def assert_same(error: BaseException, original: BaseException) -> None:
    assert type(error) is type(original)
    assert str(error) == str(original) == "what happened"
    fields = {name: value for name, value in vars(error).items() if name != "__notes__"}
    assert fields == {name: value for name, value in vars(original).items() if name != "__notes__"}


def test_the_tree_in_the_docstring_is_the_tree():
    assert set(re.findall(r"\w+Error\b", errors.__doc__)) - {"ValueError", "RuntimeError"} == set(ALL)
    assert set(TREE) <= set(ALL)
    for name, parent in TREE.items():
        assert issubclass(ALL[name], parent)
        assert getattr(ct, name) is ALL[name]


def test_python_users_can_catch_what_they_expect():
    assert issubclass(ct.InputError, ValueError)
    assert issubclass(ct.PullError, RuntimeError)
    assert issubclass(ct.ProtocolError, RuntimeError)


@pytest.mark.parametrize("kind", ALL.values())
def test_an_error_survives_pickling_with_its_notes(kind):
    error = example_of(kind)
    error.add_note("where it was raised")
    copy = pickle.loads(pickle.dumps(error))
    assert_same(copy, error)
    assert copy.__notes__ == ["where it was raised"]


@pytest.mark.parametrize("kind", ALL.values())
def test_an_error_of_a_remote_agent_is_raised_here_as_what_it_was(kind):
    error = example_of(kind)
    data = msgspec.msgpack.encode(fault_of(2, error))
    assert_same(msgspec.msgpack.decode(data, type=Fault).error(), error)


def test_a_subclass_with_a_constructor_of_its_own_survives_pickling():
    error = pickle.loads(pickle.dumps(TooHot(40)))
    assert (type(error), str(error), error.degrees) == (TooHot, "40 degrees are too many", 40)


class TooHot(ct.InputError):
    def __init__(self, degrees):
        super().__init__(f"{degrees} degrees are too many", argument="degrees")
        self.degrees = degrees


def test_a_subclass_from_elsewhere_crosses_as_the_nearest_class_of_collabtop():
    error = fault_of(2, TooHot(40)).error()
    assert type(error) is ct.InputError
    assert (str(error), error.argument) == ("40 degrees are too many", "degrees")


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("HorizonError", {}),
        ("HorizonError", {"smallest": "many"}),
        ("HorizonError", {"smallest": 3, "colour": "red"}),
        ("AgentsGoneError", {"agents": 3}),
        ("AgentsGoneError", {"agents": "ab"}),
        ("BaseException", {}),
        ("reason", {}),
    ],
)
def test_fields_that_no_error_has_are_refused(name, fields):
    with pytest.raises(ProtocolError, match=f"{name} with the fields"):
        rebuild_error(name, "what happened", fields)


@pytest.mark.parametrize(
    ("error", "argument"),
    [
        (ct.InputError("m is 0, but at least 1 is needed", argument="m"), "m"),
        (ct.InputError("give exactly one of them"), None),
        (ct.HorizonError("horizon is 3, but 7 is needed", 7), "horizon"),
        (errors.BudgetError("budget is 3, but 7 is needed", 7.0), "budget"),
        (ct.UnknownAlgorithmError("algorithm is 'kz'"), "algorithm"),
        (ct.SettingError("agents is 2, but sar runs with 1", argument="agents"), "agents"),
        (ct.FileError("means.txt: no such file"), None),
    ],
)
def test_an_input_error_names_the_argument_that_is_wrong(error, argument):
    assert error.argument == argument
