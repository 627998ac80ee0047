"""The counts of bench/structure.py, on a small tree of files."""

from __future__ import annotations

from pathlib import Path

from bench import structure

FILES = {
    "platform/first/__init__.py": "",
    "platform/first/one.py": "from first.two import run\n\ndef show(): ...\n\nclass Command: ...\n",
    "platform/first/two.py": "from . import three\n\ndef run(): ...\n\ndef _hidden(): ...\n",
    "platform/first/three.py": (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from first import two\n\n"
        "try:\n    def run(): ...\nexcept ImportError:\n    pass\n\n"
        "class Command: ...\n\ndef _hidden():\n    import first.one\n"
    ),
    "platform/first/migrations/0001_initial.py": "def run(): ...\n",
    "second/__init__.py": "from first.one import show\n",
    "bench/show.py": "def show(): ...\n",
    "tests/test_all.py": "def show(): ...\n",
    "tests/__init__.py": "",
    "tests/people/__init__.py": "",
    "tests/scene.py": "def make(): ...\n",
    "tests/people/scene.py": "def make(): ...\n",
    ".venv/lib.py": "def show(): ...\n",
}


def tree(folder: Path) -> Path:
    for name, source in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source, encoding="utf-8")
    return folder


def test_files_and_names_are_counted_by_the_rules(tmp_path: Path) -> None:
    root = tree(tmp_path)
    assert len(list(structure.python_files(root))) == 7
    modules = structure.modules(root)
    assert [module.name for module in modules] == ["first", "first.one", "first.three", "first.two", "second"]
    assert structure.duplicates(modules) == {"run": ["first.three", "first.two"]}
    assert structure.folders(modules) == {"platform/first": 3, "second": 0}


def test_bench_and_the_helpers_of_tests_are_shared_modules_too(tmp_path: Path) -> None:
    root = tree(tmp_path)
    assert structure.duplicates(structure.shared_modules(root)) == {
        "make": ["tests.people.scene", "tests.scene"],
        "run": ["first.three", "first.two"],
        "show": ["first.one", "show"],
    }


def test_an_import_circle_may_lie_in_functions_alone(tmp_path: Path) -> None:
    modules = structure.modules(tree(tmp_path))
    at_import = structure.imports(modules, in_functions=False)
    assert at_import == {
        "first": set(),
        "first.one": {"first.two"},
        "first.two": {"first.three"},
        "first.three": set(),
        "second": {"first.one"},
    }
    assert structure.circles(at_import) == []
    anywhere = structure.imports(modules, in_functions=True)
    assert structure.circles(anywhere) == [["first.one", "first.three", "first.two"]]
