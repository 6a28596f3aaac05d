"""``python -m tests.tidy``: print the figures of the language and the layout, each with its limit.

The exit code is 1 if a figure exceeds its limit. ``pytest tests/tidy`` checks more, and finds the places.
"""

import sys

from tests.tidy import identifiers, language, prose, repository
from tests.tidy.limits import (
    AVERAGE_MAX,
    FOLDER_MAX,
    IDENTIFIERS_MAX,
    PARTICIPLES_MAX,
    RELATIVE_MAX,
    SENTENCE_MAX,
    SPEECH_MAX,
)


def main() -> bool:
    """Print the table; return whether all figures are within their limits."""
    guides = [prose.words(each) for page in prose.guides() for each in prose.sentences(page)]
    longest = max(prose.words(each) for page in prose.pages() for each in prose.sentences(page))
    lines = sum(len((repository.SOURCE / path).read_text(encoding="utf-8").splitlines()) for path in language.sources())
    rows: list[tuple[str, float, float | str]] = [
        ("relative words in 100 of docstrings", language.words_per_hundred(language.RELATIVE), RELATIVE_MAX),
        ("tell, say, ask in 100 words of docstrings", language.words_per_hundred(language.SPEECH), SPEECH_MAX),
        ("functions named by a participle", len(language.participles()), PARTICIPLES_MAX),
        ("modules named by a gerund or participle alone", len(language.bare_modules()), 0),
        ("base names of several modules", len(language.repeated_modules()), 0),
        ("names in words of the dialect", len([*identifiers.definitions()]), IDENTIFIERS_MAX),
        ("modules in the largest folder", max(language.folder_sizes().values()), FOLDER_MAX),
        ("words a sentence, README, how-tos, commands", sum(guides) / len(guides), AVERAGE_MAX),
        ("words of the longest sentence of a document", longest, SENTENCE_MAX),
        ("lines in documents with words of the dialect", sum(len(prose.dialect(page)) for page in prose.pages()), 0),
        ("lines of the product", lines, "-"),
    ]
    for name, value, limit in rows:
        mark = "  exceeded" if is_exceeded(value, limit) else ""
        print(f"{name:46} {value:8,.2f}".removesuffix(".00").ljust(58) + f"limit {limit}{mark}")
    return not any(is_exceeded(value, limit) for _, value, limit in rows)


def is_exceeded(value: float, limit: float | str) -> bool:
    """Return whether a figure is above its limit; a text is never above."""
    return not isinstance(limit, str) and value > limit


if __name__ == "__main__":
    sys.exit(not main())
