"""Numbers that a caller gives: what is none is refused by name, however odd it is."""

from __future__ import annotations

import sys
import types
from fractions import Fraction

import numpy as np
import pytest

import collabtop as ct
from collabtop.validation import positive_number, real_number, require, whole_number


@pytest.mark.parametrize("value", [3, 3.0, Fraction(3), np.int64(3), np.float32(3)])
def test_every_kind_of_number_is_one(value):
    assert real_number("gap", value) == positive_number("gap", value) == 3.0


@pytest.mark.parametrize("value", ["3", None, True, np.True_, float("nan"), 3j, [3]])
@pytest.mark.parametrize("check", [real_number, positive_number])
def test_what_is_no_number_is_refused(check, value):
    with pytest.raises(ct.InputError, match=r"^gap is .*, but a (positive )?number is needed$"):
        check("gap", value)


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), Fraction(10**400), 10**5_000], ids=["large", "low", "fraction", "huge"]
)
@pytest.mark.parametrize("check", [real_number, positive_number])
def test_a_number_that_no_float_can_hold_is_refused(check, value):
    with pytest.raises(ct.InputError, match=r"^gap is .{1,80}, but a number of less than 300 digits is needed$"):
        check("gap", value)


def test_a_negative_whole_number_too_long_to_write_out_is_refused():
    with pytest.raises(ct.InputError, match="agents is a number of thousands of digits, but a whole number of at"):
        whole_number("agents", -(10**5_000), least=1)


@pytest.mark.parametrize(
    ("check", "argument"),
    [
        (lambda: whole_number("agents", 0, least=1), "agents"),
        (lambda: whole_number("agents", 9, least=1, most=8), "agents"),
        (lambda: real_number("gap", "wide"), "gap"),
        (lambda: positive_number("wait", 0), "wait"),
        (lambda: positive_number("wait", 10**400), "wait"),
        (lambda: real_number("means[3]", "x", argument="means"), "means"),
    ],
)
def test_the_error_carries_the_argument(check, argument):
    with pytest.raises(ct.InputError) as caught:
        check()
    assert caught.value.argument == argument


def test_a_module_that_is_there_is_not_imported():
    require("none", "this", "json", what="a poem")
    assert "this" not in sys.modules


def test_a_module_that_was_loaded_in_an_unusual_way_is_there(monkeypatch):
    module = types.ModuleType("handmade")
    assert module.__spec__ is None
    monkeypatch.setitem(sys.modules, "handmade", module)
    require("none", "handmade", what="a test")


def test_a_missing_module_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ct.InputError, match=r"^the page needs uvicorn, which is not installed: pip install .*watch"):
        require("watch", "starlette", "uvicorn", what="the page")
