"""Measures of the prose of documents and messages: lengths of sentences, and words of the old dialect."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy import repository

# Words and phrases that readers had to decode. Each has a plain noun or verb.
DIALECT = re.compile(
    r"\b(?:told|tells of|whoever|nobody|somebody|anew|(?:is|are|was|were) asked|so many|cannot be meant"
    r"|heeds?|is faster|was faster|were faster|begins? anew|what becomes of|what came of)\b",
    re.IGNORECASE,
)
# Pages that are kept for their age: entries of old releases, and quotations of the founding documents.
_QUOTATION = re.compile(r"\"[^\"]*\"|“[^”]*”|`[^`]*`")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z\"*`(\[])")
_ITEM = re.compile(r"(?:[*+-]|\d+\.)\s+")
# A sentence of fewer words is a label.
_WORDS_MIN = 3


def pages() -> list[Path]:
    """Return the documents for users, relative to the root."""
    return [path for path in repository.files() if path.suffix == ".md" and path.parts[0] in {"docs", "README.md"}]


def guides() -> list[Path]:
    """Return the pages that are read first: README, how-tos and commands."""
    first = {Path("README.md"), Path("docs/commands.md")}
    return [page for page in pages() if page in first or page.parent.name == "how-to"]


def sentences(page: Path) -> list[str]:
    """Return the sentences of a page, without code blocks, tables and headings."""
    return [sentence for paragraph in _paragraphs(repository.read(page)) for sentence in _split(paragraph)]


def words(sentence: str) -> int:
    """Return the number of words of a sentence; code in backquotes is one word."""
    return len(re.findall(r"[\w'’/-]+", re.sub(r"`[^`]*`", "x", sentence)))


def dialect(page: Path) -> list[str]:
    """Return the lines of a page with a word of the old dialect, outside of quotations and code."""
    text = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), repository.read(page), flags=re.DOTALL)
    lines = (_QUOTATION.sub("", line) for line in text.splitlines())
    return [f"{page}:{number}: {line.strip()}" for number, line in enumerate(lines, 1) if DIALECT.search(line)]


def source_texts() -> Iterator[tuple[Path, int, str]]:
    """Yield the strings of the product that read like a sentence: messages, help, summaries and docstrings."""
    for path in repository.python_files():
        if path.parts[0] != "src":
            continue
        for node in ast.walk(repository.tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield path, node.lineno, node.value


def _paragraphs(text: str) -> Iterator[str]:
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    lines: list[str] = []
    for line in [*map(str.strip, text.splitlines()), ""]:
        is_prose = bool(line) and not line.startswith(("|", "#"))
        item = _ITEM.match(line)
        if lines and (not is_prose or item):
            yield " ".join(lines)
            lines.clear()
        if is_prose:
            lines.append(line[item.end() :] if item else line)


def _split(paragraph: str) -> list[str]:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
    return [each for each in _SENTENCE_END.split(plain) if words(each) >= _WORDS_MIN]
