"""docs/interfaces.md names functions that exist, with the parameters that they have; docs/exporting.md every column."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from annotation import exports as annotation_exports
from bench import structure
from judging import exports as judging_exports

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "interfaces.md").read_text(encoding="utf-8")
SECTIONS = {
    "Everywhere": "platform/accounts",
    "annotation": "annotation",
    "judging": "judging",
    "analytics": "analytics",
}
CALL = re.compile(r"(?<![\w.\"])((?:[a-z_]+\.)+)(\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)")


def calls() -> Iterator[tuple[str, str, str, str]]:
    """(folder, module, function, parameters) of everything that is written as a call in a block of code."""
    for section in TEXT.split("\n## ")[1:]:
        title, _, rest = section.partition("\n")
        for block in re.findall(r"```python\n(.*?)```", rest, re.DOTALL):
            for path, function, parameters in CALL.findall(re.sub(r"#.*", "", block)):
                yield SECTIONS[title], path.rstrip("."), function, parameters


@cache
def functions(path: Path) -> dict[str, set[str] | None]:
    """Functions of a module with the names of their parameters; None for a class, whose fields are not looked at."""
    found: dict[str, set[str] | None] = {}
    for node in structure.parsed_file(path)[1].body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        elif isinstance(node, ast.ClassDef):
            found[node.name] = None
    return found


def named(parameters: str) -> set[str]:
    """Names of parameters as they are written; nothing where they are no Python."""
    try:
        arguments = ast.parse(f"def _({parameters}): ...").body[0]
    except SyntaxError:
        return set()
    assert isinstance(arguments, ast.FunctionDef)
    return {each.arg for each in (*arguments.args.args, *arguments.args.kwonlyargs)}


CALLS = [call for call in calls() if "objects" not in call[1]]


def test_there_are_calls_to_look_up() -> None:
    assert len(CALLS) > 50


def is_there(folder: str, module: str, function: str, parameters: str) -> bool:
    """Whether a module or package of that name in the folder has the function, with these parameters."""
    inside = module.removeprefix("accounts.").replace(".", "/")
    ends = (f"/{inside}", f"/{inside}/__init__")
    files = [path for path in sorted((ROOT / folder).rglob("*.py")) if str(path.with_suffix("")).endswith(ends)]
    there = [functions(path)[function] for path in files if function in functions(path)]
    return any(names is None or named(parameters) <= names for names in there)


def test_what_is_written_is_there() -> None:
    assert [call for call in CALLS if not is_there(*call)] == []


def test_every_exported_column_is_documented() -> None:
    text = (ROOT / "docs" / "exporting.md").read_text(encoding="utf-8")
    columns = {column.name for column in (*annotation_exports.SHARED, *annotation_exports.OWN, *judging_exports.OWN)}
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert columns - set(re.findall(r"`(\w+)`", " ".join(rows))) == set()
