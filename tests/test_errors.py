"""The tree of errors is the one that is drawn, and every error survives the way from one process to another."""

from __future__ import annotations

import pickle
import re

import pytest

import collabtop as ct
from collabtop import errors

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


@pytest.mark.parametrize("name", ALL)
def test_an_error_can_be_sent_from_one_process_to_another(name):
    extra = {
        "HorizonError": (7,),
        "PullError": ("b",),
        "BudgetError": (7.5,),
        "AgentsGoneError": (frozenset({1}),),
        "AgentLostError": (3, "node"),
    }.get(name, ())
    error = ALL[name]("what happened", *extra)
    there = pickle.loads(pickle.dumps(error))
    assert type(there) is type(error)
    assert str(there) == "what happened"
    assert vars(there) == vars(error)
