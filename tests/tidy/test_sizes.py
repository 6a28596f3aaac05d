import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy import repository

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
README_LINES_MAX = 150

# "path:function" -> reason for the length.
LONG_FUNCTIONS: dict[str, str] = {}


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yield the qualified name and length of every function, including nested ones."""
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        name = f"{prefix}{child.name}" if is_function or isinstance(child, ast.ClassDef) else prefix
        if is_function:
            yield name, child.end_lineno - child.lineno + 1
        yield from functions(child, f"{name}." if name and not name.endswith(".") else name)


@pytest.mark.parametrize("path", repository.python_files(), ids=str)
def test_file_is_short_enough(path):
    lines = len(repository.read(path).splitlines())
    assert lines <= FILE_LINES_MAX, f"{path} has {lines} lines; it holds more than one concept"


@pytest.mark.parametrize("path", repository.python_files(), ids=str)
def test_function_is_short_enough(path):
    long_functions = {
        f"{path}:{name}": lines for name, lines in functions(repository.tree(path)) if lines > FUNCTION_LINES_MAX
    }
    without_reason = {name: lines for name, lines in long_functions.items() if name not in LONG_FUNCTIONS}
    assert not without_reason


def test_size_exceptions_are_still_needed():
    long_functions = {
        f"{path}:{name}"
        for path in repository.python_files()
        for name, lines in functions(repository.tree(path))
        if lines > FUNCTION_LINES_MAX
    }
    assert set(LONG_FUNCTIONS) <= long_functions


def test_nested_functions_and_methods_are_measured():
    tree = ast.parse("class A:\n    def b(self):\n        if self:\n            def c():\n                pass\n")
    assert dict(functions(tree)) == {"A.b": 4, "A.b.c": 2}


@pytest.mark.skipif(not (repository.ROOT / "README.md").exists(), reason="there is no README yet")
def test_readme_is_short_enough():
    assert len(repository.read(Path("README.md")).splitlines()) <= README_LINES_MAX
