"""The examples of both APIs run, each document on a server of its own, and return the documented responses."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

import pytest

from roost.app import open_roost
from roost.model.placement.microversions import NEWEST
from tests.support.fleets.products import ROOT, fleet
from tests.support.servers.servers import serve

PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
V1_PAGE = ROOT / "docs" / "api-v1.md"
# docs/api/README.md defines this function; docs/api-v1.md uses fewer headers.
_PRELUDE = f"""
api() {{
    curl -sS -H 'x-auth-token: admin' -H 'openstack-api-version: placement {NEWEST}' \
        -H 'content-type: application/json' "$@"
}}
"""


def examples(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of the marked blocks, and the response below it."""
    for block in re.findall(r"^```console api\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = example.splitlines()
            more = next((at for at, line in enumerate(lines[1:], 1) if not line.startswith("> ")), len(lines))
            command = [lines[0], *(line[2:] for line in lines[1:more])]
            yield "\n".join(command), "\n".join(lines[more:])


def parse(text: str) -> object:
    """Return an output, parsed if it is JSON, so that line breaks and spaces do not matter."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


@pytest.fixture
def server(tmp_path):
    """The address of a server with an empty database."""
    with serve(folder=tmp_path) as running_server:
        yield running_server.address


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples are run by curl: install it")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_examples_return_the_documented_responses(path, server):
    documented = list(examples(path.read_text(encoding="utf-8")))
    assert [parse(text) for text in run_commands(documented, server)] == [parse(answer) for _, answer in documented]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples are run by curl: install it")
def test_v1_examples_return_the_documented_responses(tmp_path):
    """Fields of an object may be left out, and … stands for any value."""
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(3, vcpus=4))
    documented = list(examples(V1_PAGE.read_text(encoding="utf-8")))
    with serve(noun="up", folder=tmp_path) as server:
        outputs = run_commands(documented, server.address)
    for (command, wanted), value in zip(documented, outputs, strict=True):
        assert matches(parse(wanted), parse(value)), (command, wanted, value)


def matches(wanted: object, actual: object) -> bool:
    """Return whether a response matches the documented one."""
    if wanted == "…":
        return True
    if isinstance(wanted, dict) and isinstance(actual, dict):
        return all(key in actual and matches(value, actual[key]) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(actual, list):
        return len(wanted) == len(actual) and all(map(matches, wanted, actual))
    return wanted == actual


def run_commands(documented: list[tuple[str, str]], server: str) -> list[str]:
    """Run the commands of a page against a server; return their outputs."""
    script = [f"at={server}", _PRELUDE]
    # No response contains this byte; it separates the outputs.
    script += [f"{command}\nprintf '\\037'" for command, _ in documented]
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            ["bash", "-eu"], input="\n".join(script), cwd=folder, capture_output=True, text=True, check=False
        )
    outputs = run.stdout.split("\037")[:-1]
    assert (run.returncode, run.stderr, len(outputs)) == (0, "", len(documented))
    return outputs


def test_commands_and_responses_are_parsed_from_examples():
    text = "```console api\n$ a\n$ b \\\n>   c\n{}\n$ d\n1\n2\n```\n```console\n$ e\n```\n"
    assert list(examples(text)) == [("a", ""), ("b \\\n  c", "{}"), ("d", "1\n2")]
    assert (parse('{"a":1}\n'), parse(" x\n")) == ({"a": 1}, "x")
