"""Statements about sorted values are accepted if and only if some values satisfy all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabtop.errors import ProtocolError
from collabtop.teams.sites.sorted_values import SortedValues

COUNT = 6
levels = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
held = st.lists(levels, min_size=COUNT, max_size=COUNT).map(sorted).map(np.array)


@st.composite
def statements(draw):
    """("values", positions, values) or ("split", position, bound, equal_below), true for some values."""
    keys = draw(held)
    if draw(st.booleans()):
        positions = np.array(sorted(draw(st.sets(st.integers(0, COUNT - 1)))), np.int64)
        return "values", positions, keys[positions]
    bound, equal_below = draw(levels), draw(st.booleans())
    return "split", int(keys.searchsorted(bound, "right" if equal_below else "left")), bound, equal_below


def apply(values, statement):
    if statement[0] == "values":
        return values.with_values(*statement[1:])
    return values.with_split(*statement[1:3], equal_below=statement[3])


def is_true(keys, statement):
    if statement[0] == "values":
        return keys[statement[1]].tolist() == statement[2].tolist()
    return keys.searchsorted(statement[2], "right" if statement[3] else "left") == statement[1]


@given(keys=held, drawn=st.lists(statements(), max_size=6))
def test_true_statements_are_accepted(keys, drawn):
    values = SortedValues(COUNT)
    for statement in drawn:
        if is_true(keys, statement):
            values = apply(values, statement)


@given(drawn=st.lists(statements(), min_size=1, max_size=4))
def test_accepted_statements_are_true_for_some_values(drawn):
    values, accepted = SortedValues(COUNT), []
    for statement in drawn:
        try:
            values = apply(values, statement)
        except ProtocolError:
            continue
        accepted.append(statement)
    assert all(is_true(values._low, statement) for statement in accepted)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("values", np.array([2]), np.array([0.5])), ("values", np.array([2]), np.array([0.25]))),
        (("values", np.array([2]), np.array([0.5])), ("values", np.array([3]), np.array([0.25]))),
        (("values", np.array([2]), np.array([0.5])), ("split", 2, 0.5, True)),
        (("split", 2, 0.5, True), ("split", 3, 0.5, False)),
        (("split", 4, 0.5, False), ("split", 3, 0.75, False)),
    ],
)
def test_a_contradiction_is_rejected_in_either_order(first, second):
    for earlier, later in ((first, second), (second, first)):
        values = apply(SortedValues(COUNT), earlier)
        with pytest.raises(ProtocolError, match="contradicts an earlier one"):
            apply(values, later)
