"""Packages import in one direction only. `python -m tests.test_packages` prints who imports whom."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import collabtop as ct

SOURCE = Path(ct.__file__).parent

ORDER = [
    "cli",
    "watch",
    "reproduction",
    "display",
    "planning",
    "studies",
    "testing",
    "datasets",
    "runs",
    "teams.sites",
    "teams.ray",
    "teams.remote",
    "teams",
    "algorithms",
    "algorithms.shared",
    "coordination",
    "runlog",
    "protocol",
    "arms",
    "privacy",
    "problem",
    "intervals",
    "crossing",
    "stats",
    "text_files",
    "events",
    "validation",
    "blocks",
    "errors",
    "_version",
]
"""Every package and top-level module, highest first: each imports only those after it."""

FRONT = {"__init__", "__main__", "extending"}
"""What only names things of the packages for those outside. Only the command line imports the public names."""

EXCEPTION = ("runs.result", "display")
"""`Result.table()` and `Result.plot()` ask the display package lazily, when they are called."""


def package_of(module: str) -> str:
    """The entry of ORDER that a module belongs to, by its name below `collabtop`."""
    if module == "collabtop":  # its public names
        return "cli"
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if (name := ".".join(parts[:length])) in ORDER:
            return name
    raise AssertionError(f"collabtop.{module} belongs to no package of ORDER")


def modules() -> dict[str, ast.Module]:
    """All modules by their names below `collabtop`, parsed."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imports(tree: ast.Module) -> set[str]:
    """The modules below `collabtop` that a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "collabtop":
            names |= {f"collabtop.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.removeprefix("collabtop.") for name in names if name.split(".")[0] == "collabtop"}


def import_counts() -> Counter[tuple[str, str]]:
    """How many modules of one package import from another one, (importer, imported)."""
    counts: Counter[tuple[str, str]] = Counter()
    for name, tree in modules().items():
        if name not in FRONT:
            for theirs in {package_of(one) for one in imports(tree)}:
                counts[package_of(name), theirs] += 1
    return counts


def wrong_imports() -> list[str]:
    """Imports of a package that stands higher."""
    return [
        f"collabtop.{name} imports collabtop.{theirs}"
        for name, tree in modules().items()
        if name not in FRONT
        for theirs in sorted(imports(tree))
        if ORDER.index(package_of(theirs)) < ORDER.index(package_of(name)) and (name, package_of(theirs)) != EXCEPTION
    ]


def test_a_package_imports_only_what_stands_below_it() -> None:
    assert wrong_imports() == []


def test_every_package_is_in_the_order() -> None:
    assert {package_of(name) for name in modules() if name not in FRONT} == set(ORDER)


def test_the_exception_is_still_needed_and_lazy() -> None:
    module, package = EXCEPTION
    tree = modules()[module]
    assert package in {package_of(name) for name in imports(tree)}
    at_import = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert not any((node.module or "").startswith(f"collabtop.{package}") for node in at_import)


def matrix() -> str:
    """Who imports whom: a row per package, lowest first, with the number of its modules that import each other one."""
    counts, names = import_counts(), ORDER[::-1]
    width = max(map(len, names))
    rows = [" " * (width + 1) + " ".join(f"{place:2}" for place in range(1, len(names) + 1))]
    for place, name in enumerate(names, 1):
        cells = " ".join(f"{counts[name, other] or '.':>2}" for other in names)
        rows.append(f"{name:>{width}} {cells}  {place}")
    return "\n".join(rows)


if __name__ == "__main__":
    print(matrix())
