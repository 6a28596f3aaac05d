import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy import repository

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
README_LINES_MAX = 150

# "path:function" -> why it is better in one piece.
LONG_FUNCTIONS: dict[str, str] = {}


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yield the qualified name and the lines of every function, nested ones included."""
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        name = f"{prefix}{child.name}" if is_function or isinstance(child, ast.ClassDef) else prefix
        if is_function:
            yield name, child.end_lineno - child.lineno + 1
        yield from functions(child, f"{name}." if name and not name.endswith(".") else name)


@pytest.mark.parametrize("path", repository.python_files(), ids=str)
def test_a_file_fits_in_the_head(path):
    lines = len(repository.read(path).splitlines())
    assert lines <= FILE_LINES_MAX, f"{path} has {lines} lines; it holds more than one concept"


@pytest.mark.parametrize("path", repository.python_files(), ids=str)
def test_a_function_fits_on_a_screen(path):
    long = {f"{path}:{name}": lines for name, lines in functions(repository.tree(path)) if lines > FUNCTION_LINES_MAX}
    unexplained = {name: lines for name, lines in long.items() if name not in LONG_FUNCTIONS}
    assert not unexplained


def test_an_exception_for_a_long_function_ends_with_the_function():
    long = {
        f"{path}:{name}"
        for path in repository.python_files()
        for name, lines in functions(repository.tree(path))
        if lines > FUNCTION_LINES_MAX
    }
    assert set(LONG_FUNCTIONS) <= long


def test_functions_inside_classes_and_functions_are_measured():
    tree = ast.parse("class A:\n    def b(self):\n        if self:\n            def c():\n                pass\n")
    assert dict(functions(tree)) == {"A.b": 4, "A.b.c": 2}


@pytest.mark.skipif(not (repository.ROOT / "README.md").exists(), reason="there is no README yet")
def test_the_readme_is_read_in_one_sitting():
    assert len(repository.read(Path("README.md")).splitlines()) <= README_LINES_MAX
