"""The shape of the house: what lies where, and what names mean (docs: CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import platform
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from bench import structure

ROOT = Path(__file__).resolve().parent.parent
APPS = ("platform/panelbench", "platform/accounts", "annotation", "judging", "analytics")
CLIENT = "platform/client/panelbench_client"
GENERATED = structure.GENERATED
CODE = [
    path
    for folder in (*APPS, CLIENT, "tests", "bench")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "migrations" not in path.parts and path != ROOT / GENERATED
]
BANNED = {
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "manager",
    "handler",
    "process",
    "data",
    "info",
    "obj",
    "gold",
}
# The client's exception is called as the server's. `measure` is the function of each measurement in bench that
# `bench.against_release` calls in two checkouts, and one that notebooks import from `analytics.stats`. Every plugin of
# pytest has hooks of these names.
SEVERAL_MEANINGS = {"Refused", "measure", "read_file"}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree(path: Path) -> ast.Module:
    return structure.parsed_file(path)[1]


def own_names(path: Path) -> Iterator[str]:
    """Every name this file gives to a function, class, parameter or variable."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_platform_is_a_folder_and_no_package() -> None:
    assert not (ROOT / "platform" / "__init__.py").exists()
    assert platform.python_version(), "the standard library's platform must stay importable"


def test_the_top_level_is_the_one_that_was_asked_for() -> None:
    asked = {"manage.py", "pyproject.toml", "docker-compose.yml", "README.md", "Makefile", "LICENSE", "CHANGELOG.md"}
    asked |= {"platform", "annotation", "judging", "analytics", "templates", "static", "tests", "docs", "bench"}
    assert asked <= {path.name for path in ROOT.iterdir()}


def test_the_wheel_carries_every_app_and_what_they_show() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert tuple(wheel["packages"]) == APPS
    assert {"templates": "panelbench/templates", "static": "panelbench/static"}.items() <= wheel[
        "force-include"
    ].items()


def test_every_folder_of_tests_is_a_package_and_none_is_called_platform() -> None:
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")}
    assert [named(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
    assert "platform" not in {folder.name for folder in folders}


def test_tests_live_in_tests() -> None:
    strays = [named(path) for path in CODE if path.name.startswith("test_") and "tests" not in path.parts]
    assert strays == []


def test_a_public_name_means_one_thing() -> None:
    """No two modules define one public function or class: neither in the product nor in bench or the tests' helpers.

    Take a name out of the list when it is gone, and put none in.
    """
    twice = structure.duplicates(structure.shared_modules(ROOT))
    assert {name: modules for name, modules in twice.items() if name not in SEVERAL_MEANINGS} == {}
    assert set(twice) == SEVERAL_MEANINGS, "take out of the list what is defined once"


def test_a_docstring_follows_its_own_constant() -> None:
    """Two in a row: a constant was put between another one and its docstring, and the second describes neither."""
    strays = [
        f"{named(path)}:{second.lineno}"
        for path in CODE
        for first, second in pairwise(structure.parsed_file(path)[1].body)
        if is_docstring(first) and is_docstring(second)
    ]
    assert strays == []


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def test_figures_that_are_wide_at_a_point_have_one_list_of_each_kind() -> None:
    """Coefficients are told apart by variant, a judge's figures are not: two constants, so two names."""
    declared = [
        f"{named(path)}: {target.id}"
        for path in (ROOT / "analytics").rglob("*.py")
        for node in structure.parsed_file(path)[1].body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.endswith("_AT_A_POINT")
    ]
    assert sorted(name.split(": ")[1] for name in declared) == ["CONSERVATIVE_AT_A_POINT", "WIDE_AT_A_POINT"], declared


def test_no_modules_import_each_other() -> None:
    """Neither at the top, nor inside functions, nor for types alone."""
    graph = structure.imports(structure.modules(ROOT), in_functions=True, of_types=True)
    assert structure.circles(graph) == []


def test_names_say_what_they_mean() -> None:
    product = [path for path in CODE if "tests" not in path.parts]
    banned = {f"{named(path)}: {name}" for path in product for name in own_names(path) if name.lower() in BANNED}
    assert sorted(banned | {named(path) for path in CODE if path.stem in BANNED}) == []


def test_no_file_names_a_package_index() -> None:
    marks = ("--index-url", "--extra-index-url", "--find-links")
    pins = sorted((ROOT / "requirements").glob("*.txt"))
    assert pins
    assert [named(path) for path in pins if any(mark in path.read_text() for mark in marks)] == []
