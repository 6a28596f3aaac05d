"""The examples of the Placement API are run, each document's on an empty server, and answer what is shown."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.products import ROOT
from tests.servers import serve

PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
# The function is the one that docs/api/README.md shows.
_PRELUDE = """
api() {
    curl -sS -H 'x-auth-token: admin' -H 'openstack-api-version: placement 1.39' \
        -H 'content-type: application/json' "$@"
}
"""


def examples(text: str) -> Iterator[tuple[str, str]]:
    """Give each command of the marked blocks, and what is shown below it."""
    for block in re.findall(r"^```console api\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = example.splitlines()
            more = next((at for at, line in enumerate(lines[1:], 1) if not line.startswith("> ")), len(lines))
            command = [lines[0], *(line[2:] for line in lines[1:more])]
            yield "\n".join(command), "\n".join(lines[more:])


def told(text: str) -> object:
    """Give what was said: as JSON where it is some, so that line breaks and blanks do not matter."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


@pytest.fixture
def server(tmp_path):
    """Give the address of a server over an empty database."""
    with serve(folder=tmp_path) as found:
        yield found.address


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples are run by curl: install it")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_examples_of_a_page_answer_what_it_shows(path, server):
    script = [f"at={server}", _PRELUDE]
    shown = list(examples(path.read_text(encoding="utf-8")))
    # A byte that no answer has divides what the commands say.
    script += [f"{command}\nprintf '\\037'" for command, _ in shown]
    run = subprocess.run(["bash", "-eu"], input="\n".join(script), capture_output=True, text=True, check=False)
    said = run.stdout.split("\037")[:-1]
    assert (run.returncode, run.stderr, len(said)) == (0, "", len(shown))
    assert [told(text) for text in said] == [told(answer) for _, answer in shown]


def test_commands_and_answers_are_told_apart():
    text = "```console api\n$ a\n$ b \\\n>   c\n{}\n$ d\n1\n2\n```\n```console\n$ e\n```\n"
    assert list(examples(text)) == [("a", ""), ("b \\\n  c", "{}"), ("d", "1\n2")]
    assert (told('{"a":1}\n'), told(" x\n")) == ({"a": 1}, "x")
