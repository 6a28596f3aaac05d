"""Which feature is shown by which test: read from the marks in the sources, so that it cannot drift."""

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
# Tests outside `make test-all` show nothing by themselves.
_LEFT_OUT = frozenset({"soak", "bench", "differential", "skip"})


class Shown(NamedTuple):
    """A test and a feature."""

    feature: str
    file: str  # below the root
    test: str


def features() -> dict[str, dict[str, str]]:
    """Return what there is to show, by part and number."""
    return tomllib.loads(FEATURES.read_text())


def shown() -> list[Shown]:
    """Return what tests say they show, in order of files and lines."""
    return [each for path in sorted((ROOT / "tests").rglob("test_*.py")) for each in _in_file(path)]


def _in_file(path: Path) -> Iterator[Shown]:
    text = path.read_text()
    if f"mark.{_MARK}" not in text:
        return
    tree, name = ast.parse(text), str(path.relative_to(ROOT))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = dict(filter(None, map(_mark, node.decorator_list)))
            if not _LEFT_OUT & marks.keys():
                yield from (Shown(feature, name, node.name) for feature in marks.get(_MARK, ()))


def _mark(node: ast.expr) -> tuple[str, list[str]] | None:
    """Return the name of a mark, and what it says; None: it is none."""
    called = node.func if isinstance(node, ast.Call) else node
    is_mark = (
        isinstance(called, ast.Attribute) and isinstance(called.value, ast.Attribute) and called.value.attr == "mark"
    )
    if not is_mark:
        return None
    arguments = node.args if isinstance(node, ast.Call) else []
    return called.attr, [each.value for each in arguments if isinstance(each, ast.Constant)]


def table() -> str:
    """Return the tables of all features with their tests, as in the document."""
    tests: dict[str, list[Shown]] = {}
    for each in shown():
        tests.setdefault(each.feature, []).append(each)
    lines = []
    for part, rows in features().items():
        lines += [f"### {part.capitalize()}", "", "| number | feature | tests |", "|---|---|---|"]
        lines += [f"| {number} | {_cell(what)} | {_links(tests.get(number, []))} |" for number, what in rows.items()]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return f"`{text}`" if {*text} & {"<", "="} else text


def _links(tests: list[Shown]) -> str:
    return "<br>".join(f"[{each.test.removeprefix('test_')}](../{each.file})" for each in tests) or "not yet"


def page() -> str:
    """Return the document with the tables as they are now."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n{END}{after}"
