"""The examples of both APIs are run, each document's on a server of its own, and answer what is shown."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

import pytest

from roost.app import open_roost
from tests.support.fleets.products import ROOT, fleet
from tests.support.servers.servers import serve

PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
OWN = ROOT / "docs" / "api-v1.md"
# The function is the one that docs/api/README.md shows; docs/api-v1.md does with fewer headers.
_PRELUDE = """
api() {
    curl -sS -H 'x-auth-token: admin' -H 'openstack-api-version: placement 1.39' \
        -H 'content-type: application/json' "$@"
}
"""


def examples(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of the marked blocks, and what is shown below it."""
    for block in re.findall(r"^```console api\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = example.splitlines()
            more = next((at for at, line in enumerate(lines[1:], 1) if not line.startswith("> ")), len(lines))
            command = [lines[0], *(line[2:] for line in lines[1:more])]
            yield "\n".join(command), "\n".join(lines[more:])


def told(text: str) -> object:
    """Return what was said: as JSON where it is some, so that line breaks and blanks do not matter."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


@pytest.fixture
def server(tmp_path):
    """The address of a server over an empty database."""
    with serve(folder=tmp_path) as found:
        yield found.address


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples are run by curl: install it")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_examples_of_a_page_answer_what_it_shows(path, server):
    shown = list(examples(path.read_text(encoding="utf-8")))
    assert [told(text) for text in answers(shown, server)] == [told(answer) for _, answer in shown]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples are run by curl: install it")
def test_the_examples_of_our_own_api_answer_what_is_shown(tmp_path):
    """Of an object members may be left out, and … stands for any value."""
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(3, vcpus=4))
    shown = list(examples(OWN.read_text(encoding="utf-8")))
    with serve(noun="up", folder=tmp_path) as server:
        said = answers(shown, server.address)
    for (command, wanted), found in zip(shown, said, strict=True):
        assert is_shown(told(wanted), told(found)), (command, wanted, found)


def is_shown(wanted: object, found: object) -> bool:
    """Return whether an answer is what a page shows of it."""
    if wanted == "…":
        return True
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(key in found and is_shown(value, found[key]) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(is_shown, wanted, found))
    return wanted == found


def answers(shown: list[tuple[str, str]], server: str) -> list[str]:
    """Run the commands of a page against a server, and give what each said."""
    script = [f"at={server}", _PRELUDE]
    # A byte that no answer has divides what the commands say.
    script += [f"{command}\nprintf '\\037'" for command, _ in shown]
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            ["bash", "-eu"], input="\n".join(script), cwd=folder, capture_output=True, text=True, check=False
        )
    said = run.stdout.split("\037")[:-1]
    assert (run.returncode, run.stderr, len(said)) == (0, "", len(shown))
    return said


def test_commands_and_answers_are_told_apart():
    text = "```console api\n$ a\n$ b \\\n>   c\n{}\n$ d\n1\n2\n```\n```console\n$ e\n```\n"
    assert list(examples(text)) == [("a", ""), ("b \\\n  c", "{}"), ("d", "1\n2")]
    assert (told('{"a":1}\n'), told(" x\n")) == ({"a": 1}, "x")
