import json
from functools import partial

import msgspec
import pytest

from roost.app import open_roost
from roost.model.flavor import Flavor
from roost.model.request import Request, ResourceGroup
from tests.support.fleets.products import fleet, request
from tests.support.fleets.worlds import aggregate, host, merge_fleets


@pytest.fixture
def run(run):
    """Return a function that runs ``roost capacity``."""
    return partial(run, "capacity")


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a database in use: three hosts of 8 VCPU, 2 VCPU allocated."""
    with open_roost(data=tmp_path) as roost:
        roost.install(fleet(3, vcpus=8))
        roost.decide(request(2))
        yield tmp_path


def test_flavor_of_an_earlier_decision_is_known_by_name(run, folder):
    code, output, error = run("--data", folder, "--flavor", "2 cores")
    assert (code, error) == (0, "")
    assert output.splitlines()[:2] == [
        "2 cores: 11 more fit; 3 of 3 hosts take one now",
        "runs out first: VCPU on 3 hosts",
    ]


def test_flavors_from_files_and_inline_form_one_table(run, folder, tmp_path):
    (tmp_path / "sizes.json").write_text('[{"name": "big", "vcpus": 6}, {"name": "huge", "vcpus": 16}]')
    code, output, _ = run("--data", folder, "--flavor", tmp_path / "sizes.json", "--flavor", "vcpus=3, memory_mb=512")
    assert code == 0
    assert [line.split() for line in output.splitlines()] == [
        ["flavor", "more", "fit", "nova", "runs", "out", "first"],
        ["big", "3", "3", "VCPU", "on", "3", "hosts"],
        ["huge", "0", "0", "3", "hosts", "lack", "16", "VCPU", "or", "more"],
        ["vcpus=3,", "memory_mb=512", "6", "6", "VCPU", "on", "3", "hosts"],
    ]


def test_json_format_has_counts_by_host(run, folder):
    code, output, _ = run("--data", folder, "--known-flavors", "--by", "host", "--format", "json")
    (capacity,) = json.loads(output)
    assert code == 0
    assert capacity["count"] == sum(each["count"] for each in capacity["by_host"]) == 11


def test_known_flavors_are_counted_with_their_resource_groups(run, tmp_path):
    gpu = Request(flavor=Flavor(name="gpu", vcpus=1), groups=(ResourceGroup(suffix="_g", resources={"PGPU": 1}),))
    with open_roost(data=tmp_path) as roost:
        roost.install(fleet(3, vcpus=8))
        roost.decide(request(2))
        roost.decide(gpu)
    code, output, _ = run("--data", tmp_path, "--known-flavors")
    assert code == 0
    assert [line.split()[:5] for line in output.splitlines()[1:]] == [
        ["2", "cores", "11", "11", "VCPU"],
        ["gpu", "+", "1", "PGPU", "0"],
    ]


def test_shapes_have_no_hints_and_no_place(tmp_path):
    with open_roost(data=tmp_path) as roost:
        roost.install(fleet(3, vcpus=8))
        for host_name in ("host-0", "host-1"):
            roost.decide(Request(flavor=Flavor(name="f", vcpus=1), force_hosts=(host_name,), project_id=host_name))
        assert roost.shapes() == [Request(flavor=Flavor(name="f", vcpus=1))]


def test_request_file_may_restrict_the_hosts(run, folder, tmp_path):
    restricted = Request(flavor=Flavor(name="f", vcpus=8), ignore_hosts=("host-1",), count=50)
    (tmp_path / "request.json").write_bytes(msgspec.json.encode(restricted))
    assert run("--data", folder, "--request", tmp_path / "request.json")[1].startswith("f: 1 more fit; 1 of 3 hosts")


def test_capacity_writes_nothing(run, folder):
    before = (folder / "roost.db").read_bytes(), (folder / "roost.db-wal").read_bytes()
    assert run("--data", folder, "--flavor", "vcpus=1")[0] == 0
    assert ((folder / "roost.db").read_bytes(), (folder / "roost.db-wal").read_bytes()) == before


def test_counting_stops_at_the_limit(run, folder):
    assert run("--data", folder, "--flavor", "vcpus=1", "--limit", 5)[1].startswith("vcpus=1: at least 5 more fit")


def test_counts_of_hosts_with_shared_disk_are_marked_as_not_additive(run, tmp_path):
    with open_roost(data=tmp_path) as roost:
        pool = host("pool", aggregates=["a"], DISK_GB=10).providers[0]
        pool = msgspec.structs.replace(pool, traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"}))
        hosts = merge_fleets(aggregate("a"), *(host(name, aggregates=["a"], VCPU=8) for name in ("h1", "h2")))
        roost.install(msgspec.structs.replace(hosts, providers=[*hosts.providers, pool]))
    _, output, _ = run("--data", tmp_path, "--flavor", "vcpus=1,root_gb=2", "--by", "host")
    assert "vcpus=1,root_gb=2: 5 more fit" in output
    assert output.count("  5  lack 2 GiB disk or more") == 2
    assert "together they may hold fewer" in output


def test_empty_fleet_has_no_capacity(run, tmp_path):
    open_roost(data=tmp_path).close()
    assert run("--data", tmp_path, "--flavor", "vcpus=1")[:2] == (
        0,
        "vcpus=1: 0 more fit; 0 of 0 hosts take one now\n",
    )
    code, output, _ = run("--data", tmp_path, "--flavor", "vcpus=1", "--flavor", "vcpus=2")
    assert code == 0
    assert output.count("no hosts") == 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "give --flavor, --known-flavors or --request; see `roost capacity --help`"),
        (["--flavor", "nope"], 4, "no such stored or previously requested flavor: nope"),
        (["--flavor", "vcpus=-1"], 2, "flavor 'vcpus=-1': vcpus must be 0..2147483647, got -1"),
        (["--flavor", "vcpus=x"], 2, "flavor 'vcpus=x': vcpus must be a whole number, got 'x'"),
        (["--flavor", "cpus=1"], 2, "flavor 'cpus=1': unknown key 'cpus'"),
        (["--flavor", "vcpus=1, vcpus=2"], 2, "flavor 'vcpus=1, vcpus=2': vcpus is repeated"),
        (["--flavor", "vcpus=0"], 2, "the request is not a valid query to Placement: at least one resource group must"),
        (["--flavor", "no.json"], 4, "no.json: cannot be read: No such file or directory"),
        (["--flavor", "bad.json"], 2, "bad.json:1: column 2: is not JSON: it ends too early"),
        (["--flavor", "key.json"], 2, "key.json: $[0]: there is no key 'ram'"),
        (["--flavor", "none.json"], 2, "none.json: contains no flavor"),
        (["--request", "less.json"], 2, "less.json: $.flavor: vcpus must be 0..2147483647, got -4"),
        (["--request", "key.json"], 2, "key.json: $: must be an object, got a list"),
        (["--flavor", "vcpus=1", "--limit", "0"], 2, "the limit must be 1..10,000,000 instances, got 0"),
        (["--flavor", "vcpus=1", "--data", "absent"], 4, "absent/roost.db does not exist"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(run, folder, monkeypatch, words, code, message):
    monkeypatch.chdir(folder)
    (folder / "bad.json").write_text("{")
    (folder / "key.json").write_text('[{"name": "a", "ram": 5}]')
    (folder / "none.json").write_text("[]")
    (folder / "less.json").write_text('{"flavor": {"name": "a", "vcpus": -4}}')
    exit_code, output, error = run("--data", folder, *words)
    assert (exit_code, output) == (code, "")
    assert error.startswith(f"roost: {message}")
    assert error.count("\n") == 1


def test_ambiguous_flavor_name_is_refused(run, tmp_path):
    folder = tmp_path / "other"
    with open_roost(data=folder) as roost:
        roost.install(fleet(1, vcpus=8))
        for vcpus in (1, 2):
            roost.decide(Request(flavor=Flavor(name="f", vcpus=vcpus)))
    code, _, error = run("--data", folder, "--flavor", "f")
    assert (code, error) == (2, "roost: the name 'f' is ambiguous: 2 flavors have it; put the right one in a file\n")


def test_known_flavors_need_earlier_decisions(run, tmp_path):
    open_roost(data=tmp_path).close()
    code, _, error = run("--data", tmp_path, "--known-flavors")
    assert code == 2
    assert error.startswith("roost: no flavor is stored or was requested yet")
