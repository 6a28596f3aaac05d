"""Golden files: a change of a public text shows as a diff to review."""

from collections.abc import Callable
from pathlib import Path

import pytest

FILES = Path(__file__).parent / "files"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with ``tests/golden/files/<name>``; `make golden` writes it instead."""

    def compare(name: str, text: str) -> None:
        file = FILES / name
        if request.config.getoption("--golden-rewrite"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert file.exists(), f"no golden file {name}; `make golden` writes it, then review and commit it"
        assert text == file.read_text(encoding="utf-8"), f"{name} changed; if it is meant to, run `make golden`"

    return compare
