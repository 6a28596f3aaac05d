"""The page about the client library: its program runs, and it lists all methods."""

import re

from roost.app import open_roost
from roost.client import AsyncClient, Client
from tests.docs.documents import ROOT, blocks
from tests.support.fleets.products import fleet
from tests.support.servers.servers import serve

PAGE = ROOT / "docs" / "how-to" / "place-from-a-program.md"
ADDRESS = "http://127.0.0.1:8780"


def test_program_of_the_page_runs_on_a_server(tmp_path, capsys):
    text = PAGE.read_text(encoding="utf-8")
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(3, vcpus=8))
    namespace = {"__name__": "__main__"}
    with serve(noun="up", folder=tmp_path) as server:
        for line, block in blocks(text, "python client"):
            program = "\n" * line + block.replace(ADDRESS, server.address)
            exec(compile(program, str(PAGE), "exec"), namespace)
    output = capsys.readouterr().out
    assert "404 not-found no such decision: none" in output
    assert "['host-0', 'host-1', 'host-2']" in output
    assert "['granted', 'granted', 'granted']" in output


def test_page_lists_all_methods():
    section = PAGE.read_text(encoding="utf-8").partition("\n## Methods\n")[2]
    listed = set(re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section, re.MULTILINE))
    names = {name for cell in listed for name in re.findall(r"\w+", cell)}
    for kind in (Client, AsyncClient):
        assert names == {name for name in vars(kind) if not name.startswith("_")}
