"""Where a key stands in a TOML file, found with the parser that forgets it."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabtop.studies.toml_lines import line_of


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("a = 1\nb = 2\n", ("b",), 2),
        ("a = 1\nb = 2", ("c",), None),
        ("a.b = 1\n\na.c = 2\n", ("a", "c"), 3),
        ("[a]\nx = 1\n[b]\nx = 2\n", ("b", "x"), 4),
        ("[a]\nx = 1\n[b]\nx = 2\n", ("b", "y"), 3),
        ("[[a]]\nx = 1\n[[a]]\nx = 2\n", ("a", 1, "x"), 4),
        ("a = [\n  [1, 2],\n  [3,\n   4]]\n", ("a", 1, 1), 4),
        ("a = {x = [1,\n2,\n3], y = 4}\n", ("a", "x", 2), 3),
        ('a = """\nb = 1\n"""\nb = 2\n', ("b",), 4),
        ("a = '''\nb = 1\n'''\nb = 2\n", ("b",), 4),
        ("a = [ # ]\n 1, # 2,\n 2\n]\nb = 1", ("a", 1), 3),
        ("a = [[[\n1\n],\n[2]]]\nb = 1\n", ("b",), 5),  # no line within it can be read by itself
        ('"a b"."c.d" = 1\n"a b".e = 2', ("a b", "e"), 2),
    ],
)
def test_the_line_of_a_key(text, key, line):
    tomllib.loads(text)
    assert line_of(text, key) == line


@given(st.lists(st.sampled_from(["", "# x = 1", "{} = 1", "{} = [\n1,\n2\n]", "{} = 'it'"]), min_size=1, max_size=12))
def test_every_key_is_found_on_its_own_line(statements):
    text = "\n".join(one.format(f"key{place}") for place, one in enumerate(statements))
    lines = text.split("\n")
    for place, one in enumerate(statements):
        if one.startswith("{}"):
            line = next(number for number, here in enumerate(lines, 1) if here.startswith(f"key{place} "))
            assert line_of(text, (f"key{place}",)) == line
