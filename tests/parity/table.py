"""The feature tables: the tests of each feature, read from the marks in the sources."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FEATURES = Path(__file__).with_name("features.toml")
PAGE = ROOT / "docs" / "parity.md"
BEGIN, END = "<!-- features: begin -->", "<!-- features: end -->"
_MARK = "shows"
# A test with one of these marks is outside `make test-all`. A feature needs another test, too.
_EXCLUDED_MARKS = frozenset({"soak", "bench", "differential", "skip"})


class FeatureTest(NamedTuple):
    """A test and a feature."""

    feature: str
    file: str  # relative to the root
    test: str


def features() -> dict[str, dict[str, str]]:
    """Return the features, by part and number."""
    return tomllib.loads(FEATURES.read_text())


def feature_tests() -> list[FeatureTest]:
    """Return the features of all marked tests, in order of files and lines."""
    return [each for path in sorted((ROOT / "tests").rglob("test_*.py")) for each in _in_file(path)]


def _in_file(path: Path) -> Iterator[FeatureTest]:
    text = path.read_text()
    if f"mark.{_MARK}" not in text:
        return
    tree, name = ast.parse(text), str(path.relative_to(ROOT))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = dict(filter(None, map(_mark, node.decorator_list)))
            if not _EXCLUDED_MARKS & marks.keys():
                yield from (FeatureTest(feature, name, node.name) for feature in marks.get(_MARK, ()))


def _mark(node: ast.expr) -> tuple[str, list[str]] | None:
    """Return the name of a mark and its arguments; None for other decorators."""
    function = node.func if isinstance(node, ast.Call) else node
    is_mark = (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Attribute)
        and function.value.attr == "mark"
    )
    if not is_mark:
        return None
    arguments = node.args if isinstance(node, ast.Call) else []
    return function.attr, [each.value for each in arguments if isinstance(each, ast.Constant)]


def table() -> str:
    """Return the tables of all features with their tests."""
    tests: dict[str, list[FeatureTest]] = {}
    for each in feature_tests():
        tests.setdefault(each.feature, []).append(each)
    lines = []
    for part, rows in features().items():
        lines += [f"### {part.capitalize()}", "", "| number | feature | tests |", "|---|---|---|"]
        lines += [f"| {number} | {_cell(what)} | {_links(tests.get(number, []))} |" for number, what in rows.items()]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return f"`{text}`" if {*text} & {"<", "="} else text


def _links(tests: list[FeatureTest]) -> str:
    return "<br>".join(f"[{each.test.removeprefix('test_')}](../{each.file})" for each in tests) or "not yet"


def page() -> str:
    """Return the document with the current tables."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n{END}{after}"
