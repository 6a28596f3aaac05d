"""Code blocks and links of the documents: blocks run, and link targets exist."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.documents import DOCUMENTS, ROOT, blocks, documents_with, files, name

COMMAND_S_MAX = 60


def commands(text: str, mark: str = "runnable") -> list[list[str]]:
    """Return the words of each ``$ roost`` line in blocks with a mark."""
    lines = [line for _, block in blocks(text, f"console {mark}") for line in block.splitlines()]
    return [shlex.split(line[2:]) for line in lines if line.startswith("$ roost")]


def roost_command() -> list[str]:
    """Return the command of an installed ``roost``, or one that runs the sources."""
    script = Path(sys.executable).with_name("roost")
    return [str(script)] if script.exists() else [sys.executable, "-m", "roost"]


@pytest.mark.parametrize("path", documents_with("python"), ids=name)
def test_python_blocks_run_in_order(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = path.read_text(encoding="utf-8")
    for file, body in files(text).items():
        Path(file).write_text(body, encoding="utf-8")
    namespace = {"__name__": "__main__"}
    for line, block in blocks(text, "python"):
        # The empty lines give tracebacks the line numbers of the document.
        exec(compile("\n" * line + block, str(path), "exec"), namespace)


@pytest.mark.parametrize("path", documents_with("console runnable"), ids=name)
def test_roost_commands_run_in_order(path, tmp_path, monkeypatch):
    text = prepare(path, tmp_path, monkeypatch)
    for command in commands(text):
        run_command(command, tmp_path)


@pytest.mark.parametrize("path", documents_with("console checked"), ids=name)
def test_checked_blocks_show_lines_of_the_real_output(path, tmp_path, monkeypatch):
    """The document may leave out lines of the output; the lines that it has must match."""
    text = prepare(path, tmp_path, monkeypatch)
    for _, block in blocks(text, "console checked"):
        (command,) = commands(f"```console checked\n{block}```\n", "checked")
        output = run_command(command, tmp_path).splitlines()
        assert [line for line in block.splitlines()[1:] if line not in output and line != "…"] == []


def prepare(path, folder, monkeypatch):
    """Write the files of a document to an empty home folder; return the document."""
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    text = path.read_text(encoding="utf-8")
    for file, body in files(text).items():
        (folder / file).write_text(body, encoding="utf-8")
    return text


def run_command(command, folder):
    """Run a command and return its output."""
    run = subprocess.run(
        [*roost_command(), *command[1:]], cwd=folder, capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False
    )
    assert run.returncode == 0, f"{shlex.join(command)}\n{run.stdout}{run.stderr}"
    return run.stdout


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_local_links_lead_to_existing_files(path):
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", prose(path))]
    local = [target for target in targets if target and not target.startswith(("http://", "https://", "mailto:"))]
    assert [target for target in local if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_to_headings_lead_to_existing_headings(path):
    links = [target.split("#") for target in re.findall(r"\]\(([^)\s]+#[^)\s]+)\)", prose(path))]
    local = [((path.parent / file).resolve() if file else path, heading) for file, heading in links if ":" not in file]
    assert [(file, heading) for file, heading in local if heading not in headings(file)] == []


def prose(path):
    """Return the text of a document without its blocks."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def headings(path):
    """Return the link names of a document's headings."""
    titles = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in titles}


def test_blocks_and_commands_are_found_by_their_marks():
    text = "a\n```json f.json\n{}\n```\n```python\nx = 1\n```\n```console\n$ roost no\n```\n"
    text += "```console runnable\n$ roost up --port 1\nok\n```\n"
    assert list(blocks(text, "python")) == [(5, "x = 1\n")]
    assert files(text) == {"f.json": "{}\n"}
    assert commands(text) == [["roost", "up", "--port", "1"]]
    assert commands("```console checked\n$ roost up\n```\n", "checked") == [["roost", "up"]]
