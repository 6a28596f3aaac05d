"""Completion of values, by the protocol of the scripts that ``roost completion`` prints."""

import socket
import subprocess
import time

import pytest

from roost.app import open_roost
from tests.support.agents.http_agents import ADMIN
from tests.support.fleets import products
from tests.support.fleets.products import fleet
from tests.support.servers.servers import serve


def complete(folder, *words, **environment):
    """Return the values that a shell would offer for the last word."""
    line = " ".join(("roost", *map(str, words)))
    found = products.roost(
        cwd=folder, _ROOST_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(words)), **environment
    )
    assert (found.returncode, found.stderr) == (0, "")
    lines = [line for line in found.stdout.splitlines() if line]
    assert all(line.startswith("plain,") for line in lines), lines
    return [line.removeprefix("plain,") for line in lines]


@pytest.fixture
def place(server):
    """Return the environment of a shell on the server."""
    return {"ROOST_URL": server.address, "ROOST_TOKEN": "admin"}


def test_names_of_every_kind_complete(server, command, place, tmp_path):
    assert command("flavor", "set", "small", "--vcpus", "1", "--memory-mb", "16")[0] == 0
    assert command("flavor", "set", "large", "--vcpus", "2", "--memory-mb", "16")[0] == 0
    assert command("image", "set", "debian")[0] == 0
    assert command("aggregate", "create", "rack", "--zone", "east", "--json")[0] == 0
    assert command("aggregate", "set", "rack", "--join", "host-0")[0] == 0
    assert command("group", "create", "spread", "--policy", "affinity")[0] == 0
    assert command("instance", "create", "web", "--flavor", "small")[0] == 0
    registration = {"run": "5b5a1c3e-6a8e-4b4a-9d57-000000000001", "driver": "fake", "nodes": []}
    assert server.ask("PUT", "/v1/agents/host-2", registration, headers=ADMIN)[0] == 200
    (operation,) = server.ask("GET", "/v1/operations?kind=build", headers=ADMIN)[2]["operations"]
    for words, names in {
        ("host", "drain", ""): ["host-0", "host-1", "host-2"],
        ("host", "drain", "host-0", "host-1"): ["host-1"],
        ("drain", "host-2"): ["host-2"],
        ("host", "show", "x"): [],
        ("instance", "show", ""): ["web"],
        ("instance", "create", "db", "--flavor", "s"): ["small"],
        ("flavor", "show", ""): ["large", "small"],
        ("image", "delete", "d"): ["debian"],
        ("instance", "create", "db", "--zone", "e"): ["east"],
        ("host", "list", "--aggregate", ""): ["rack"],
        ("group", "show", ""): ["spread"],
        ("agent", "show", ""): ["host-2"],
        ("why", "l"): ["last", "last-refused"],
        ("why", "w"): ["web"],
    }.items():
        assert complete(tmp_path, *words, **place) == names, words
    assert operation["uuid"] in complete(tmp_path, "operation", "show", "", **place)


def test_options_on_the_line_select_the_server(server, tmp_path):
    token = tmp_path / "token"
    token.write_text("admin\n", encoding="ascii")
    token.chmod(0o644)  # Outside of a completion, a command warns about it.
    line = ("host", "show", "--url", server.address, "--token-file", token, "host-1")
    assert complete(tmp_path, *line, ROOST_URL="http://127.0.0.1:1") == ["host-1"]


def test_names_that_a_shell_would_interpret_are_not_offered(server, place, tmp_path):
    for name in ("good.one", "müde", "$(touch pwned)", "a;b", "-x", "~root"):
        status, *_ = server.ask("PUT", f"/v1/flavors/{name_in_path(name)}", {"vcpus": 1}, headers=ADMIN)
        assert status in {200, 201}, name
    assert complete(tmp_path, "flavor", "show", "", **place) == ["good.one", "müde"]


def name_in_path(name):
    """Return a name as a segment of a path."""
    return "".join(f"%{byte:02X}" for byte in name.encode())


def test_at_most_a_hundred_names_are_offered_and_a_prefix_finds_the_rest(tmp_path):
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(150, vcpus=1))
    with serve(noun="up", folder=tmp_path) as server:
        place = {"ROOST_URL": server.address}
        assert len(complete(tmp_path, "host", "set", "", **place)) == 100
        assert complete(tmp_path, "host", "set", "host-149", **place) == ["host-149"]
        assert complete(tmp_path, "host", "show", "host-149", **place) == ["host-149"]


def test_an_error_completes_nothing_and_says_nothing(server, tmp_path):
    words = ("instance", "show", "")
    assert complete(tmp_path, *words, ROOST_URL="http://127.0.0.1:1") == []
    assert complete(tmp_path, *words, ROOST_URL="not a url") == []
    assert complete(tmp_path, *words, ROOST_URL=server.address, ROOST_TOKEN_FILE=str(tmp_path / "absent")) == []
    assert complete(tmp_path, "host", "show", "--data", tmp_path, "", ROOST_URL=server.address) == []


def test_a_silent_server_delays_the_shell_for_a_second_only(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        assert complete(tmp_path, "host", "show", "", ROOST_URL=f"http://127.0.0.1:{silent.getsockname()[1]}") == []
        assert time.monotonic() - start < 10  # The client of a command would wait for 60 seconds.


def test_known_values_complete_without_a_server(tmp_path):
    place = {"ROOST_URL": "http://127.0.0.1:1"}
    assert complete(tmp_path, "config", "show", "--section", "st", **place) == ["store"]
    assert complete(tmp_path, "host", "list", "-o", "", **place) == ["table", "wide", "json", "yaml", "csv"]
    assert complete(tmp_path, "events", "--type", "agent.re", **place) == ["agent.ready", "agent.registered"]
    assert "affinity" in complete(tmp_path, "group", "create", "x", "--policy", "", **place)
    (tmp_path / "roost.toml").write_text("[nonsense]\nx = 1\n", encoding="utf-8")
    assert "store" in complete(tmp_path, "config", "show", "--section", "", **place)


def test_script_for_bash_completes_a_host(server, tmp_path):
    script = """
        eval "$(roost completion bash)"
        COMP_WORDS=(roost host drain host-2); COMP_CWORD=3
        _roost_completion roost
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    environment = products.environ_with_program(tmp_path, ROOST_URL=server.address)
    found = subprocess.run(
        ["bash", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "host-2\n", "")
