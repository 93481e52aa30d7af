"""Numbers that a caller gives: what is none is refused by name, however odd it is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import collabtop as ct
from collabtop.validation import positive_number, real_number, whole_number


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
