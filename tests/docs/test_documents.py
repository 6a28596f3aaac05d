"""What a document shows runs, and what it points to exists."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.documents import DOCUMENTS, ROOT, blocks, files, name, with_any

COMMAND_S_MAX = 60


def commands(text: str, mark: str = "runnable") -> list[list[str]]:
    """Return the words of each ``$ roost`` line in the blocks with a mark."""
    lines = [line for _, block in blocks(text, f"console {mark}") for line in block.splitlines()]
    return [shlex.split(line[2:]) for line in lines if line.startswith("$ roost")]


def program() -> list[str]:
    """Return the command as a reader has it; where it is not installed, the same from the sources."""
    installed = Path(sys.executable).with_name("roost")
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "roost"]


@pytest.mark.parametrize("path", with_any("python"), ids=name)
def test_the_python_blocks_of_a_document_run_in_order(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = path.read_text(encoding="utf-8")
    for file, shown in files(text).items():
        Path(file).write_text(shown, encoding="utf-8")
    namespace = {"__name__": "__main__"}
    for line, block in blocks(text, "python"):
        # The empty lines let a traceback show the line of the document.
        exec(compile("\n" * line + block, str(path), "exec"), namespace)


@pytest.mark.parametrize("path", with_any("console runnable"), ids=name)
def test_the_commands_of_a_document_run_in_order(path, tmp_path, monkeypatch):
    text = prepare(path, tmp_path, monkeypatch)
    for command in commands(text):
        answered(command, tmp_path)


@pytest.mark.parametrize("path", with_any("console checked"), ids=name)
def test_what_a_checked_block_shows_is_what_the_command_prints(path, tmp_path, monkeypatch):
    """Lines may be left out; those that are shown are printed so."""
    text = prepare(path, tmp_path, monkeypatch)
    for _, block in blocks(text, "console checked"):
        (command,) = commands(f"```console checked\n{block}```\n", "checked")
        printed = answered(command, tmp_path).splitlines()
        assert [line for line in block.splitlines()[1:] if line not in printed and line != "…"] == []


def prepare(path, folder, monkeypatch):
    """Put the files of a document into an empty folder, home included, as a reader starts; return the document."""
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    text = path.read_text(encoding="utf-8")
    for shown, body in files(text).items():
        (folder / shown).write_text(body, encoding="utf-8")
    return text


def answered(command, folder):
    """Run a command as a reader does, who has it on the path; return what it prints."""
    run = subprocess.run(
        [*program(), *command[1:]], cwd=folder, capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False
    )
    assert run.returncode == 0, f"{shlex.join(command)}\n{run.stdout}{run.stderr}"
    return run.stdout


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_the_links_of_a_document_lead_somewhere(path):
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", prose(path))]
    local = [target for target in targets if target and not target.startswith(("http://", "https://", "mailto:"))]
    assert [target for target in local if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_a_link_to_a_heading_finds_it(path):
    links = [target.split("#") for target in re.findall(r"\]\(([^)\s]+#[^)\s]+)\)", prose(path))]
    local = [((path.parent / file).resolve() if file else path, heading) for file, heading in links if ":" not in file]
    assert [(file, heading) for file, heading in local if heading not in headings(file)] == []


def prose(path):
    """Return a document without its blocks."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def headings(path):
    """Return the headings of a document as links name them."""
    found = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_blocks_and_commands_are_found_by_their_marks():
    text = "a\n```json f.json\n{}\n```\n```python\nx = 1\n```\n```console\n$ roost no\n```\n"
    text += "```console runnable\n$ roost up --port 1\nok\n```\n"
    assert list(blocks(text, "python")) == [(5, "x = 1\n")]
    assert files(text) == {"f.json": "{}\n"}
    assert commands(text) == [["roost", "up", "--port", "1"]]
    assert commands("```console checked\n$ roost up\n```\n", "checked") == [["roost", "up"]]
