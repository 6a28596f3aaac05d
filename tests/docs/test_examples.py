"""The examples print the documented output, and every filter and weigher has one."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from roost.cli.commands.decide import decide
from tests.docs.documents import ROOT, blocks, documents_with, files, name
from tests.tidy import repository


@pytest.mark.parametrize("path", documents_with("console example"), ids=name)
def test_decide_examples_print_the_documented_output(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = path.read_text(encoding="utf-8")
    for file, body in files(text).items():
        Path(file).write_text(body, encoding="utf-8")
    for line, block in blocks(text, "console example"):
        command, *expected = block.splitlines()
        run = CliRunner().invoke(decide, shlex.split(command)[3:])
        # Only a granted request exits with 0: an example needs a host that every filter accepts.
        assert run.exit_code == 0, f"line {line}: {command}\nis not granted:\n{run.output}"
        # Lines in order; … stands for any number of other lines.
        pattern = "\n".join(re.escape(each) if each != "…" else r"(?:.*\n)*?.*" for each in expected)
        is_documented = re.fullmatch(pattern, run.output.rstrip("\n")) is not None
        missing = [each for each in expected if each != "…" and each not in run.output.splitlines()]
        assert is_documented, f"line {line}: {command}\nprints no line {missing}, or another order:\n{run.output}"


@pytest.mark.parametrize("rule", repository.rules("filters"))
def test_filter_has_an_example(rule):
    text = (ROOT / "docs" / "filters.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {rule}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert section is not None, f"docs/filters.md has no heading ## {rule}"
    found = [*blocks(section[1], "console example")]
    assert len(found) == 1, f"## {rule} of docs/filters.md needs one block `console example`"
    (example,) = found
    assert example[1].startswith("$ roost decide ")


@pytest.mark.parametrize("rule", repository.rules("weighers"))
def test_weigher_has_an_example(rule):
    text = (ROOT / "docs" / "weighers.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {rule}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert section is not None, f"docs/weighers.md has no heading ## {rule}"
    found = [*blocks(section[1], "console example"), *blocks(section[1], "console checked")]
    assert len(found) == 1, f"## {rule} of docs/weighers.md needs one block `console example`"
    (example,) = found
    assert example[1].startswith("$ roost decide ")
    has_column = re.search(rf"^  host .* {rule}$", example[1], re.MULTILINE)
    assert has_column, f"{rule} must be the last column of the ranking in its example"
