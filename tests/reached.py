"""The product's functions that a view calls, directly or through others, read from the code without running it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"accounts": "platform", "panelbench": "platform", "annotation": "", "judging": "", "analytics": ""}
Place = tuple[str, str]  # a module and the name of its function


@cache
def functions_of(module: str) -> tuple[dict[str, ast.FunctionDef], dict[str, Place]]:
    """The functions of a module, and what it imports from ours: of which module, and under which name there."""
    stem = ROOT / FOLDERS.get(module.partition(".")[0], "platform") / module.replace(".", "/")
    path = next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.exists()), None)
    tree = ast.parse(path.read_text(encoding="utf-8") if path else "")
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    ours = [node for node in imports if str(node.module).partition(".")[0] in FOLDERS]
    named = {name.asname or name.name: (str(node.module), name.name) for node in ours for name in node.names}
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}, named


def reached_functions(start: Place) -> dict[Place, ast.FunctionDef]:
    """A view and all functions of ours that it names, and that those name."""
    found: dict[Place, ast.FunctionDef] = {}
    waiting = [start]
    while waiting:
        module, name = waiting.pop()
        functions, named = functions_of(module)
        if name not in functions:
            if name in named and (module, name) != named[name]:
                waiting.append(named[name])
        elif (module, name) not in found:
            found[module, name] = functions[name]
            waiting += _named_in(functions[name], module)
    return found


def _named_in(function: ast.FunctionDef, module: str) -> Iterator[Place]:
    functions, named = functions_of(module)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and (node.id in functions or node.id in named):
            yield named.get(node.id, (module, node.id))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in named:
            of, name = named[node.value.id]
            yield f"{of}.{name}", node.attr


def texts_in(part: ast.AST) -> set[str]:
    """Every piece of text that is written in a function, or in another part of code."""
    return {node.value for node in ast.walk(part) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def arguments_of(calls: Collection[str], function: ast.FunctionDef) -> set[str]:
    """The texts that a function gives to others of these names."""
    found = (node for node in ast.walk(function) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    return {text for call in found if ast.unparse(call.func) in calls for text in texts_in(call)}
