"""The examples of a document give what it shows, and every filter and weigher has one."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from roost.cli.commands.decide import decide
from tests.docs.documents import ROOT, blocks, files, name, with_any
from tests.tidy import repository


@pytest.mark.parametrize("path", with_any("console example"), ids=name)
def test_the_examples_of_a_document_give_what_it_shows(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = path.read_text(encoding="utf-8")
    for shown, body in files(text).items():
        Path(shown).write_text(body, encoding="utf-8")
    for line, block in blocks(text, "console example"):
        command, *wanted = block.splitlines()
        run = CliRunner().invoke(decide, shlex.split(command)[3:])
        assert run.exit_code == 0, f"line {line}: {run.output}"
        # Lines in their order; … stands for any number of others.
        pattern = "\n".join(re.escape(each) if each != "…" else r"(?:.*\n)*?.*" for each in wanted)
        assert re.fullmatch(pattern, run.output.rstrip("\n")), f"line {line}: {command}\n{run.output}"


@pytest.mark.parametrize("rule", repository.rules("filters"))
def test_a_filter_has_an_example(rule):
    text = (ROOT / "docs" / "filters.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {rule}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert section is not None
    (example,) = blocks(section[1], "console example")
    assert example[1].startswith("$ roost decide ")


@pytest.mark.parametrize("rule", repository.rules("weighers"))
def test_a_weigher_has_an_example(rule):
    text = (ROOT / "docs" / "weighers.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {rule}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert section is not None
    (example,) = [*blocks(section[1], "console example"), *blocks(section[1], "console checked")]
    assert example[1].startswith("$ roost decide ")
    assert re.search(rf"^  host .* {rule}$", example[1], re.MULTILINE)
