"""``roost operation`` and ``roost decision`` on a server with agents."""

import csv
import json

from tests.support.agents.http_agents import play_agents

SMALL = ("--flavor", "vcpus=1,memory_mb=16")


def rows(result):
    """Return the rows of a CSV list."""
    code, output, error = result
    assert (code, error) == (0, ""), error
    return [*csv.DictReader(output.splitlines())]


def test_operations_are_listed_by_outcome_kind_and_instance(server, command):
    command("instance", "create", "web", *SMALL)
    with play_agents(server):
        command("instance", "create", "db", *SMALL, "--wait")
        command("instance", "resize", "db", "vcpus=99", "--wait")
        assert command("operation", "list")[1] == "no operations\n"
        ended = rows(command("operation", "list", "--all", "-o", "csv"))
        assert [row["outcome"] for row in ended if row["kind"] == "build"] == ["done", "done"]
        (failed,) = rows(command("operation", "list", "--failed", "-o", "csv"))
        assert (failed["kind"], failed["instance"], "VCPU" in failed["problem"]) == ("resize", "db", True)
        of_db = rows(command("operation", "list", "--all", "--instance", "db", "-o", "csv"))
        assert [row["kind"] for row in of_db] == ["spawn", "resize"]
        assert rows(command("operation", "list", "--all", "--kind", "drain", "-o", "csv")) == []
        text = command("operation", "show", failed["uuid"])[1]
        assert "resize.asked" in text
        assert text.splitlines()[0].split() == ["uuid", failed["uuid"]]
        assert command("operation", "cancel", failed["uuid"])[0] == 5
        assert command("operation", "show", "none") == (4, "", "roost: no such operation: none\n")
        assert command("operation", "list", "--all", "--failed")[0] == 2


def test_open_operation_is_listed_and_a_drain_cancelled(server, command):
    with play_agents(server):
        command("instance", "create", "web", *SMALL, "--wait", "--host", "host-0")
    _, _, drain = server.ask("POST", "/v1/hosts/host-0/drain", {}, headers={"x-auth-token": "admin"})
    list_drains = ("operation", "list", "--kind", "drain", "-o", "csv")
    (row,) = rows(command(*list_drains))
    assert (row["outcome"], row["uuid"]) == ("open", drain["operation"])
    code, output, _ = command("operation", "pause", drain["operation"], "--json")
    assert (code, json.loads(output)["drain"]["is_paused"]) == (0, True)
    (row,) = rows(command(*list_drains))
    assert row["outcome"] == "paused"
    code, output, _ = command("operation", "resume", drain["operation"], "--json")
    assert (code, json.loads(output)["drain"]["is_paused"]) == (0, False)
    code, output, _ = command("operation", "cancel", drain["operation"], "--json")
    assert (code, json.loads(output)["is_cancelled"]) == (0, True)
    assert {row["outcome"] for row in rows(command(*list_drains))} <= {"cancelled"}  # It may have ended by now.
    assert json.loads(command("operation", "show", drain["operation"], "--json")[1])["is_cancelled"]


def test_decisions_are_listed_with_filters_and_shown(server, command):
    for vcpus in (1, 99, 1):
        server.ask("POST", "/v1/decisions", {"flavor": {"vcpus": vcpus}}, headers={"x-auth-token": "admin"})

    def listed(*options):
        return rows(command("decision", "list", *options, "-o", "csv"))

    newest, *_ = found = listed()
    assert [row["outcome"] for row in found] == ["granted", "refused", "granted"]
    assert listed("--limit", "2") == found[:2]
    assert listed("--refused", "--reason", "VCPU") == found[1:2]
    assert len(listed("--granted", "--since", "1h")) == 2
    assert listed("--host", newest["result"])[0] == newest
    text = command("decision", "show", newest["uuid"][:30])[1]
    assert text.splitlines()[0].split() == ["uuid", newest["uuid"]]
    assert "alternate" in text
    assert "search" in text
