"""What is told of sorted values is let through exactly if there are values that it is true of."""

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
    """("shown", places, values) or ("split", place, bound, equal_below), true of some values of the drawer's own."""
    keys = draw(held)
    if draw(st.booleans()):
        places = np.array(sorted(draw(st.sets(st.integers(0, COUNT - 1)))), np.int64)
        return "shown", places, keys[places]
    bound, equal_below = draw(levels), draw(st.booleans())
    return "split", int(keys.searchsorted(bound, "right" if equal_below else "left")), bound, equal_below


def told(values, statement):
    if statement[0] == "shown":
        return values.with_values(*statement[1:])
    return values.with_split(*statement[1:3], equal_below=statement[3])


def is_true(keys, statement):
    if statement[0] == "shown":
        return keys[statement[1]].tolist() == statement[2].tolist()
    return keys.searchsorted(statement[2], "right" if statement[3] else "left") == statement[1]


@given(keys=held, some=st.lists(statements(), max_size=6))
def test_the_truth_is_never_refused(keys, some):
    values = SortedValues(COUNT)
    for statement in some:
        if is_true(keys, statement):
            values = told(values, statement)


@given(some=st.lists(statements(), min_size=1, max_size=4))
def test_what_is_let_through_is_true_of_some_values(some):
    values, believed = SortedValues(COUNT), []
    for statement in some:
        try:
            values = told(values, statement)
        except ProtocolError:
            continue
        believed.append(statement)
    assert all(is_true(values._low, statement) for statement in believed)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("shown", np.array([2]), np.array([0.5])), ("shown", np.array([2]), np.array([0.25]))),
        (("shown", np.array([2]), np.array([0.5])), ("shown", np.array([3]), np.array([0.25]))),
        (("shown", np.array([2]), np.array([0.5])), ("split", 2, 0.5, True)),
        (("split", 2, 0.5, True), ("split", 3, 0.5, False)),
        (("split", 4, 0.5, False), ("split", 3, 0.75, False)),
    ],
)
def test_a_contradiction_is_refused_whichever_comes_first(first, second):
    for one, other in ((first, second), (second, first)):
        values = told(SortedValues(COUNT), one)
        with pytest.raises(ProtocolError, match="contradicts an earlier one"):
            told(values, other)
