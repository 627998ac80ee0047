"""How the code is cut: ``python -m bench.structure [--root CHECKOUT] [--names]``.

What counts, everywhere below:

- *Python files* are every ``*.py`` below the root, except in ``tests``, ``build``, ``dist``, ``node_modules`` and
  folders that begin with a dot. *Modules* are these without ``migrations`` and without ``bench``.
- A module's name is its path from the first folder that has an ``__init__.py``: ``platform/accounts/mail.py`` is
  ``accounts.mail``.
- *Shared modules* are the modules, those of ``bench``, and those of ``tests`` that pytest does not collect. The types
  of the client are left out: they are generated and called as in the API.
- A *public name* is a function or class at the top of a module (also below an ``if`` or ``try`` there) that begins with
  no underscore. It is a duplicate when two or more modules define it. What a module imports or assigns is not counted,
  nor is ``Command``, the name that Django asks of every management command.
- An *import circle* is a strongly connected component of two modules or more. ``from a import b`` leads to ``a.b``
  where that is a module, else to ``a``; imports below ``if TYPE_CHECKING`` count only where this is
  said. That importing ``a.b`` also runs ``a/__init__.py`` is not counted (import-linter doesn't either).
- A function's length is counted from its first statement after the docstring to its last line.

By these rules commit 1200a08 has 167 duplicates and 377 modules: the numbers "before" of issue 10 (167 and 378).
"""

from __future__ import annotations

import argparse
import ast
import gc
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

FULL_FOLDER, LONG_FILE, LONG_FUNCTION = 25, 600, 60
NOT_OURS = {"tests", "build", "dist", "node_modules", "__pycache__"}
GENERATED = Path("platform/client/panelbench_client/types.py")
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
Graph = Mapping[str, set[str]]


@dataclass(frozen=True, slots=True)
class Module:
    """One file: its path from the root, its dotted name, its lines and its syntax tree."""

    path: Path
    name: str
    lines: int
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


def python_files(root: Path) -> Iterator[Path]:
    """Every Python file that counts, relative to the root."""
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if not any(part in NOT_OURS or part.startswith(".") for part in inside.parts):
            yield inside


def modules(root: Path) -> list[Module]:
    """The modules: Python files without migrations and bench."""
    return [_module(root, path) for path in python_files(root) if not {"migrations", "bench"} & set(path.parts)]


def shared_modules(root: Path) -> list[Module]:
    """The modules, those of bench and those of tests that pytest does not collect, without generated ones."""
    tests = (path.relative_to(root) for path in sorted((root / "tests").rglob("*.py")))
    scenes = [path for path in tests if not path.name.startswith("test_")]
    files = [path for path in python_files(root) if "migrations" not in path.parts and path != GENERATED]
    return [_module(root, path) for path in (*files, *scenes)]


def _module(root: Path, path: Path) -> Module:
    source, tree = parsed_file(root / path)
    return Module(path, _dotted(root, path), len(source.splitlines()), tree)


@cache
def parsed_file(path: Path) -> tuple[str, ast.Module]:
    """The text and the tree of a file. All trees are kept, so the garbage collector is to pass them over: it would take
    two thirds of the time.
    """
    source = path.read_text(encoding="utf-8")
    gc.disable()
    try:
        return source, ast.parse(source)
    finally:
        gc.freeze()
        gc.enable()


def _dotted(root: Path, path: Path) -> str:
    parts = list(path.with_suffix("").parts)
    folders = parts[:-1]
    first = next((n for n in range(len(folders)) if (root.joinpath(*folders[: n + 1]) / "__init__.py").exists()), None)
    named = parts[-1:] if first is None else parts[first:]
    return ".".join(named[:-1] if named[-1] == "__init__" and len(named) > 1 else named)


# --- names ----------------------------------------------------------------------------------------------------------
def duplicates(parsed: Sequence[Module]) -> dict[str, list[str]]:
    """By public name that several modules define, those modules; without what pytest and Django call by its name."""
    owners: dict[str, set[str]] = defaultdict(set)
    for module in parsed:
        for node in _executed(module.tree.body, into_classes=False):
            if isinstance(node, FUNCTION | ast.ClassDef) and not node.name.startswith(("_", "pytest_")):
                owners[node.name].add(module.name)
    return {name: sorted(owners[name]) for name in sorted(owners) if len(owners[name]) > 1 and name != "Command"}


def _executed(body: Sequence[ast.stmt], *, into_classes: bool) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported; `if TYPE_CHECKING` doesn't, its `else` does."""
    for node in body:
        yield node
        if isinstance(node, FUNCTION) or (isinstance(node, ast.ClassDef) and not into_classes):
            continue
        typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for part in ("body", "orelse", "finalbody"):
            if not (typing_only and part == "body"):
                yield from _executed(getattr(node, part, []), into_classes=into_classes)
        for clause in getattr(node, "handlers", []):
            yield from _executed(clause.body, into_classes=into_classes)


# --- imports --------------------------------------------------------------------------------------------------------
def imports(parsed: Sequence[Module], *, in_functions: bool, of_types: bool = False) -> Graph:
    """By module, the modules of the checkout that it imports: when it is imported itself, or also inside functions; or
    all of them, with those that only a type checker reads.
    """
    known = {module.name for module in parsed}
    return {
        module.name: {
            target
            for node in _import_statements(module, in_functions, of_types)
            for target in _targets(module, node, known)
        }
        - {module.name}
        for module in parsed
    }


def _import_statements(module: Module, in_functions: bool, of_types: bool) -> Iterator[ast.stmt]:
    if of_types:
        yield from (node for node in ast.walk(module.tree) if isinstance(node, ast.Import | ast.ImportFrom))
        return
    top = list(_executed(module.tree.body, into_classes=True))
    yield from top
    if in_functions:
        functions = (node for node in ast.walk(module.tree) if isinstance(node, FUNCTION))
        for function in functions:
            yield from _executed(function.body, into_classes=True)


def _targets(module: Module, node: ast.stmt, known: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (name for alias in node.names if (name := _longest(alias.name, known)))
    elif isinstance(node, ast.ImportFrom):
        base = _base(module, node)
        for alias in node.names:
            whole = f"{base}.{alias.name}"
            if name := whole if whole in known else _longest(base, known):
                yield name


def _base(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    above = package[: len(package) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _longest(name: str, known: set[str]) -> str:
    """The module of the checkout that a dotted name reaches into, or nothing."""
    parts = name.split(".")
    return next((head for n in range(len(parts), 0, -1) if (head := ".".join(parts[:n])) in known), "")


def circles(graph: Graph) -> list[list[str]]:
    """The strongly connected components of two modules or more, largest first."""
    names = sorted(graph)
    number = {name: n for n, name in enumerate(names)}
    edges = [(number[name], number[target]) for name in names for target in graph[name]]
    ends = np.array(edges, dtype=int).reshape(-1, 2).T
    matrix = coo_array((np.ones(len(edges)), (ends[0], ends[1])), shape=(len(names), len(names)))
    _count, component = connected_components(matrix, connection="strong")
    together: dict[int, list[str]] = defaultdict(list)
    for name, which in zip(names, component, strict=True):
        together[int(which)].append(name)
    return sorted((names for names in together.values() if len(names) > 1), key=lambda names: (-len(names), names))


# --- lengths --------------------------------------------------------------------------------------------------------
def folders(parsed: Sequence[Module]) -> dict[str, int]:
    """By folder, how many modules lie directly in it, `__init__` not counted; fullest first."""
    counts: dict[str, int] = defaultdict(int)
    for module in parsed:
        counts[str(module.path.parent)] += not module.is_package
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def long_functions(parsed: Sequence[Module]) -> dict[str, int]:
    """By place and name, the lengths of functions that are too long."""
    lengths = {
        f"{module.path}:{node.lineno} {node.name}": _body_lines(node)
        for module in parsed
        for node in ast.walk(module.tree)
        if isinstance(node, FUNCTION)
    }
    return {place: length for place, length in lengths.items() if length > LONG_FUNCTION}


def _body_lines(function: FUNCTION) -> int:
    body = function.body[1:] if ast.get_docstring(function) and len(function.body) > 1 else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


# --- the report -----------------------------------------------------------------------------------------------------
def report(root: Path, *, names: bool) -> str:
    """Every count as a Markdown table, and below it what the counts are of."""
    files, parsed = list(python_files(root)), modules(root)
    product = [path for path in files if "bench" not in path.parts]
    twice, shared, counts = duplicates(parsed), duplicates(shared_modules(root)), folders(parsed)
    at_import = circles(imports(parsed, in_functions=False))
    anywhere = circles(imports(parsed, in_functions=True))
    with_types = circles(imports(parsed, in_functions=True, of_types=True))
    full = {folder: count for folder, count in counts.items() if count > FULL_FOLDER}
    long = {str(module.path): module.lines for module in parsed if module.lines > LONG_FILE}
    rows = [
        ("public functions and classes defined in more than one module", len(twice)),
        ("the same among shared modules (bench and tests too, generated types not)", len(shared)),
        ("Python files outside tests, with bench and migrations", len(files)),
        ("Python files outside tests and bench, with migrations", len(product)),
        ("Python files outside tests, bench and migrations", len(parsed)),
        ("the same without `__init__.py`", sum(not module.is_package for module in parsed)),
        (f"folders with more than {FULL_FOLDER} modules", len(full)),
        ("import circles, imports at the top of modules", len(at_import)),
        ("import circles, imports inside functions too", len(anywhere)),
        ("import circles, imports for types too", len(with_types)),
        (f"files of more than {LONG_FILE} lines", len(long)),
        (f"functions of more than {LONG_FUNCTION} lines", len(long_functions(parsed))),
    ]
    table = ["| count | |", "|---|---|", *(f"| {what} | {count} |" for what, count in rows)]
    lists = [
        *(f"- {folder}/: {count} modules" for folder, count in full.items()),
        *(f"- circle at import ({len(circle)}): {', '.join(circle)}" for circle in at_import),
        *(f"- circle with imports inside functions ({len(circle)}): {', '.join(circle)}" for circle in anywhere),
        *(f"- circle with imports for types ({len(circle)}): {', '.join(circle)}" for circle in with_types),
        *(f"- {place}: {length} lines" for place, length in {**long, **long_functions(parsed)}.items()),
        *(f"- `{name}`: {', '.join(owners)}" for name, owners in (twice | shared).items() if names),
    ]
    return "\n".join([*table, *([""] if lists else []), *lists])


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="another checkout")
    parser.add_argument("--names", action="store_true", help="list the duplicate names and where they are")
    asked = parser.parse_args()
    print(report(asked.root.resolve(), names=asked.names))


if __name__ == "__main__":
    _main()
