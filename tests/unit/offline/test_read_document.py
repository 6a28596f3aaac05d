"""Errors of malformed documents: one sentence, with the file and the place in it."""

import io
import json

import pytest

from roost.errors import BadFile
from roost.model.documents.fleet_document import FleetDocument
from roost.model.documents.request_document import RequestDocument
from roost.offline.read_document import parse_document, read_document
from tests.unit.offline.documents import answer, fleet, provider

ONE = "00000000-0000-4000-8000-000000000001"


def error_of(body: bytes, kind: type = FleetDocument) -> str:
    """Return the error for a malformed document."""
    with pytest.raises(BadFile) as caught:
        parse_document(body, kind, name="f.json")
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"hosts": [{"host": "a"},\n  {"host": "b",}]}', ":2: column 16: is not JSON: trailing comma in object"),
        ('{"hosts":\n[{"host": "ä",}]}'.encode(), ":2: column 15: is not JSON: trailing comma in object"),
        (b'{"hosts": [', ":1: column 12: is not JSON: it ends too early"),
        (b"", ":1: column 1: is not JSON: it ends too early"),
        (b'{"hosts": [{"host": "a"}]} x', ":1: column 28: is not JSON: trailing characters"),
        (b'{"hosts": [{"host": "\xff"}]}', ":1: column 22: is not UTF-8 text"),
        (b'{"now": NaN, "hosts": []}', ":1: column 9: is not JSON: invalid character"),
        (b"[]", ": $: must be an object, got a list"),
        (b'{"version": 2, "hosts": []}', ": $.version: invalid enum value 2"),
        (b'{"hosts": [{"host": "a", "stats": {"x": 1}}]}', ": $.hosts[0].stats['x']: must be text, got a whole number"),
        (b'{"hosts": [{"host": "a", "stats": {"x": 1}', ": $.hosts[0].stats[...]: must be text, got a whole number"),
        (
            b'{"hosts": [{"host": "a", "cpu_info": {"a": ' + b"[" * 100_000 + b"}]}",
            ": its lists and objects are nested too deeply",
        ),
    ],
)
def test_malformed_document_error_names_the_position_or_path(body, error):
    assert error_of(body) == f"f.json{error}"


@pytest.mark.parametrize(
    ("host", "error"),
    [
        ({"free_ram_mb": "1"}, ".free_ram_mb: must be a whole number or null, got text"),
        ({"free_ram_mb": 1.5}, ".free_ram_mb: must be a whole number or null, got a number"),
        ({"free_ram_mb": -(2**60)}, ".free_ram_mb: must be a whole number >= -9007199254740992"),
        ({"vcpus_total": -1}, ".vcpus_total: must be a whole number >= 0"),
        ({"vcpus_total": 2**40}, ".vcpus_total: must be a whole number <= 2147483647"),
        ({"cpu_allocation_ratio": -0.5}, ".cpu_allocation_ratio: must be a number >= 0.0"),
        ({"supported_instances": [["x86_64"]]}, ".supported_instances[0]: must be a list of length 3"),
        ({"free_ram": 1}, ": there is no key 'free_ram'; there is 'free_ram_mb'"),
        ({"zzz": 1}, ": there is no key 'zzz'"),
        ({"service": {"disabled": 1}}, ".service.disabled: must be true or false, got a whole number"),
        ({"uuid": "1"}, ".uuid: invalid UUID"),
        ({"host": ""}, ".host: must be text of length >= 1"),
        ({"host": None}, ".host: must be text, got null"),
    ],
)
def test_invalid_host_error_names_the_path(host, error):
    body = json.dumps({"hosts": [{"host": "fine"}, {"host": "a"} | host]}).encode()
    assert error_of(body) == f"f.json: $.hosts[1]{error}"


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (
            {"hosts": [{"host": "a"}, {"host": "a"}]},
            "$.hosts[1]: the host 'a' with the node 'a' is a duplicate of $.hosts[0]",
        ),
        (
            {"hosts": [{"host": "a", "uuid": ONE}, {"host": "b", "uuid": ONE}]},
            f"$.hosts[1]: two hosts have the uuid {ONE}",
        ),
        (
            {"hosts": [{"host": "a", "nodename": "x", "hypervisor_hostname": "y"}]},
            "$.hosts[0]: nodename and hypervisor_hostname differ",
        ),
        ({"hosts": [{"host": "a", "cpu_info": "[]"}]}, "$.hosts[0].cpu_info: is not a JSON object"),
        (
            {"hosts": [{"host": "a", "instances": [ONE]}, {"host": "b", "instances": [ONE]}]},
            f"$.hosts[1].instances[0]: the instance {ONE} is a duplicate of $.hosts[0].instances[0]",
        ),
        ({"aggregates": [{"name": "x", "hosts": ["a", "nope"]}]}, "$.aggregates[0].hosts[1]: there is no host 'nope'"),
        ({"aggregates": [{"hosts": []}]}, "$.aggregates[0]: it has neither a name nor a uuid"),
        ({"aggregates": [{"name": "x", "hosts": []}] * 2}, "$.aggregates[1]: two aggregates have the uuid"),
        ({"zones": {"z": ["nope"]}}, "$.zones.z[0]: there is no host 'nope'"),
        (
            {"hosts": [{"host": "s", "nodename": "1"}, {"host": "s", "nodename": "2"}], "zones": {"z": ["s"]}},
            "$.zones.z[0]: 2 hosts are called 's'; use a uuid",
        ),
        ({"server_groups": [{"policy": "affinity"}]}, "$.server_groups[0]: it has neither a name nor a uuid"),
        (
            {"server_groups": [{"name": "g", "policy": "affinity", "members": {"nope": 1}}]},
            "$.server_groups[0].members.nope: there is no host 'nope'",
        ),
        (
            {"server_groups": [{"name": "g", "policy": "affinity", "members": {"a": [ONE], "b": [ONE]}}]},
            "$.server_groups[0].members.b[0]: the instance is already a member",
        ),
        (
            {
                "hosts": [{"host": "a", "instances": [ONE]}, {"host": "b"}],
                "server_groups": [{"name": "g", "policy": "affinity", "members": {"b": [ONE]}}],
            },
            "$.server_groups[0].members.b[0]: the instance is on another host, at $.hosts[0].instances[0]",
        ),
        (
            {"server_groups": [{"name": "g", "policy": "affinity", "fault_domains": [{"rack": "r", "domain": "d"}]}]},
            "$.server_groups[0].fault_domains: they require policy fault-domain, not affinity",
        ),
        ({"providers": []}, "$.hosts[0]: there is no provider 'a'"),
        ({"providers": [provider("a"), provider("a")]}, "$.providers[1]: two providers have the uuid"),
        (
            {"hosts": [{"host": "a"}], "providers": [provider("a", parent="nope")]},
            "$.hosts[0]: its provider 'a' is not the root of a tree",
        ),
        (
            {"hosts": [{"host": "a"}], "providers": [provider("a"), provider("x", parent="nope")]},
            "$.providers[1].parent: there is no provider 'nope'",
        ),
        (
            {
                "hosts": [{"host": "a"}],
                "providers": [provider("a"), provider("x", parent="y"), provider("y", parent="x")],
            },
            "$.providers[1].parent: the provider 'x' is its own ancestor",
        ),
        (
            {"hosts": [{"host": "a"}], "providers": [provider("a", aggregates=["nope"])]},
            "$.providers[0].aggregates[0]: there is no aggregate 'nope'",
        ),
        (
            {"hosts": [{"host": "a"}], "providers": [provider("a", inventories={"CPU": {"total": 1}})]},
            "$.providers[0].inventories: 'CPU' is neither a standard resource class",
        ),
        (
            {"hosts": [{"host": "a"}], "providers": [provider("a", traits=["fast"])]},
            "$.providers[0].traits: 'fast' is neither a standard trait",
        ),
        ({"images": [{"instances": [ONE]}]}, f"$.images[0].instances[0]: the instance {ONE} is on no host"),
        (
            {"hosts": [{"host": "a", "instances": [ONE]}], "images": [{"instances": [ONE]}, {"instances": [ONE]}]},
            f"$.images[1].instances[0]: the instance {ONE} already has an image",
        ),
        ({"resource_classes": ["x"]}, "$.resource_classes: 'x' is neither a standard resource class"),
    ],
)
def test_inconsistent_fleet_error_names_the_path(wrong, error):
    with pytest.raises(BadFile) as caught:
        answer(fleet(**wrong))
    assert str(caught.value).startswith(f"fleet.json: {error}")
    assert "\n" not in str(caught.value)


def test_inventory_bounds_are_checked():
    body = {"hosts": [{"host": "a"}], "providers": [provider("a", inventories={"VCPU": {"total": 1, "reserved": 2}})]}
    assert (
        error_of(json.dumps(body).encode())
        == "f.json: $.providers[0].inventories['VCPU']: reserved must be 0..1, got 2"
    )
    body["providers"] = [provider("a", inventories={"VCPU": {"total": 1, "used": -1}})]
    assert (
        error_of(json.dumps(body).encode())
        == "f.json: $.providers[0].inventories['VCPU'].used: must be a whole number >= 0"
    )


def test_an_empty_fleet_is_refused():
    assert error_of(b'{"hosts": []}') == "f.json: $.hosts: must be a list of length >= 1"
    assert error_of(b"{}") == "f.json: $: the key 'hosts' is missing"


def test_unreadable_file_is_a_clear_error(tmp_path):
    for path, problem in (
        (tmp_path / "absent", "cannot be read: No such file or directory"),
        (tmp_path, "cannot be read: Is a directory"),
        ("a\0b", "cannot be read: embedded null byte"),
    ):
        with pytest.raises(BadFile, match=problem):
            read_document(str(path), FleetDocument)


def test_a_file_that_is_too_long_is_refused(tmp_path):
    path = tmp_path / "f.json"
    path.write_bytes(b'{"flavor": {}}')
    assert read_document(str(path), RequestDocument, bytes_max=14).count == 1
    with pytest.raises(BadFile, match=r"f\.json: is longer than 13 bytes"):
        read_document(str(path), RequestDocument, bytes_max=13)


def test_dash_means_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"flavor": {"vcpus": 3}}')))
    assert read_document("-", RequestDocument).flavor.vcpus == 3
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"{")))
    with pytest.raises(BadFile, match="standard input:1: column 2"):
        read_document("-", RequestDocument)
