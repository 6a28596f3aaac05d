"""The commands of aggregates, hosts, groups, flavors and images, on a database and on a server."""

import json
import re

import pytest
from msgspec.structs import replace

from roost.app import open_roost
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import fleet
from tests.support.servers.servers import serve


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a database with three hosts of 4 VCPU."""
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(3, vcpus=4))
    return tmp_path


@pytest.fixture(params=["database", "server"])
def command(request, folder, run):
    """Return a function that runs a command on the database or on a server, and returns its output."""

    def command_on(*place):
        def command(*words, code=0):
            result = run(*words, *place)
            assert result[0] == code, result
            return result[1] if code == 0 else result[2]

        command.errors = lambda *words: run(*words, *place)[2]
        return command

    if request.param == "database":
        yield command_on("--data", folder)
    else:
        with serve(noun="up", folder=folder) as server:
            yield command_on("--url", server.address)


def test_aggregate_is_created_changed_and_deleted(command):
    created = json.loads(command("aggregate", "create", "rack", "--zone", "east", "--metadata", "ssd=true", "--json"))
    assert (created["name"], created["metadata"]) == ("rack", {"ssd": "true", "availability_zone": "east"})
    command("aggregate", "set", "rack", "--join", "host-1", "--join", "host-2", "--unset", "ssd", "--name", "row")
    assert command("aggregate", "list").splitlines() == [
        "name  zone  hosts  metadata  uuid",
        f"row   east      2  -         {created['uuid']}",
    ]
    assert "host-1, host-2" in command("aggregate", "show", created["uuid"])
    assert "has 2 members" in command("aggregate", "delete", "row", code=5)
    command("aggregate", "set", "row", "--leave", "host-1", "--leave", "host-2")
    assert command("aggregate", "delete", "row") == ""
    assert command("aggregate", "show", "row", code=4) == "roost: no such aggregate: row\n"
    assert json.loads(command("aggregate", "list", "--json")) == []


def test_ratios_of_an_aggregate_are_changed(command):
    command("aggregate", "create", "rack")
    assert "no host is in aggregate rack" in command("aggregate", "set", "rack", "--cpu-ratio", "2", code=4)
    command("aggregate", "set", "rack", "--join", "host-1", "--join", "host-2")
    assert command("aggregate", "set", "rack", "--cpu-ratio", "2", "--dry-run").splitlines() == [
        "host    node    class  ratio   capacity  used",
        "host-1  host-1  VCPU   1 -> 2  4 -> 8       0",
        "host-2  host-2  VCPU   1 -> 2  4 -> 8       0",
        "",
        "2 of 2 hosts would have the new ratios",
    ]
    assert "2 of 2 hosts have" in command("aggregate", "set", "rack", "--cpu-ratio", "2", "--memory-ratio", "1.5")
    host = json.loads(command("host", "show", "host-1", "--json"))
    assert {name: each["capacity"] for name, each in host["resources"].items()} == {"VCPU": 8, "MEMORY_MB": 6144}
    failure = command("aggregate", "set", "rack", "--disk-ratio", "2", code=1)
    assert "2 of 2 hosts kept a ratio" in failure
    for words in (("--dry-run",), ("--cpu-ratio", "2", "--name", "row"), ("--cpu-ratio", "0")):
        command("aggregate", "set", "rack", *words, code=2)
    assert "aggregate_core would" in command.errors("aggregate", "set", "rack", "--metadata", "cpu_allocation_ratio=8")


def test_changes_of_an_object_are_found_by_its_name(command):
    def kinds(name):
        return [each["kind"] for each in json.loads(command("change", "list", "--object", name, "--json"))]

    command("aggregate", "create", "rack")
    command("group", "create", "web", "--policy", "affinity")
    command("host", "set", "host-1", "--disable")
    for name in ("rack", "aggregate:rack"):
        assert kinds(name) == ["aggregate.create"]
    assert kinds("group:web") == kinds("web") == ["group.create"]
    assert kinds("host:HOST-1") == kinds("host-1") == ["host.disable"]
    assert kinds("host-2") == kinds("provider:host-2") == []
    command("aggregate", "delete", "rack")
    assert kinds("aggregate:rack") == ["aggregate.delete", "aggregate.create"]
    assert "no object is called 'nope'" in command("change", "list", "--object", "nope", code=4)
    for kind in ("host", "provider", "aggregate", "group", "instance", "flavor", "image", "operation"):
        assert f"no such {kind}: nope" in command("change", "list", "--object", f"{kind}:nope", code=4)
    command("aggregate", "create", "host-2")
    assert "give host:host-2 or aggregate:host-2" in command("change", "list", "--object", "host-2", code=2)


def test_hosts_of_an_aggregate_or_zone_are_set_together(command):
    def states():
        return {each["host"]: each["disabled"] for each in json.loads(command("host", "list", "--json"))}

    command("aggregate", "create", "rack", "--zone", "east")
    command("aggregate", "set", "rack", "--join", "host-1", "--join", "host-2")
    command("host", "set", "host-1", "--disable", "--reason", "fan")
    dry = command("host", "set", "--aggregate", "rack", "--disable", "--dry-run").splitlines()
    assert dry == [
        "host    before              after               problem",
        "host-1  disabled, up (fan)  disabled, up (fan)  -",
        "host-2  enabled, up         disabled, up        -",
        "",
        "1 would change, 1 unchanged, 0 failed",
    ]
    assert states() == {"host-0": False, "host-1": True, "host-2": False}
    assert "1 changed, 1 unchanged" in command("host", "set", "--zone", "east", "--disable")
    assert "raise --max-hosts" in command("host", "set", "--zone", "east", "--enable", "--max-hosts", "1", code=2)
    assert states() == {"host-0": False, "host-1": True, "host-2": True}
    assert "2 changed" in command("host", "set", "--aggregate", "rack", "--enable")
    assert states() == dict.fromkeys(("host-0", "host-1", "host-2"), False)
    # An unknown host does not keep the others from their change.
    assert "1 of 2 hosts were not changed" in command("host", "set", "HOST-0", "nope", "--disable", code=1)
    assert states()["host-0"]
    results = json.loads(command("host", "set", "host-0", "host-1", "--force-down", "--json"))
    assert [each["after"] for each in results] == ["disabled, forced down", "enabled, forced down"]
    for words in (("--enable",), ("host-0",), ("--aggregate", "rack")):
        command("host", "set", *words, code=2)
    command("aggregate", "create", "empty")
    assert "no host is in this" in command("host", "set", "--aggregate", "empty", "--enable", code=4)


def test_hosts_are_listed_shown_and_set(command):
    command("host", "set", "host-1", "--disable", "--reason", "the disk fails", "--force-down")
    lines = command("host", "list").splitlines()
    assert lines[0].split("  ")[0] == "host"
    assert "disabled, forced down" in lines[2]
    assert [each["host"] for each in json.loads(command("host", "list", "--disabled", "--down", "--json"))] == [
        "host-1"
    ]
    assert len(command("host", "list", "--enabled", "--up").splitlines()) == 3
    assert "disabled reason  the disk fails" in command("host", "show", "host-1")
    document = json.loads(command("host", "set", "host-1", "--enable", "--no-force-down", "--json"))
    assert (document["disabled"], document["disabled_reason"], document["up"]) == (False, "", True)
    assert command("host", "show", "none", code=4) == "roost: no such host: none\n"


def test_host_list_shows_the_capacity_with_its_allocation_ratio(tmp_path, run):
    hosts = fleet(1, vcpus=4)
    (provider,) = hosts.providers
    offers = {
        name: replace(each, allocation_ratio=4.0) for name, each in provider.inventories.items() if name == "VCPU"
    }
    with open_roost(None, tmp_path) as roost:
        roost.install(replace(hosts, providers=[replace(provider, inventories={**provider.inventories, **offers})]))
    lines = run("host", "list", "--data", tmp_path)[1].splitlines()
    assert re.search(r"  0 of 16  0 of 4,096 +-$", lines[1])


def test_empty_list_says_so(tmp_path, run):
    with open_roost(None, tmp_path):
        pass
    nouns = {"host": "hosts", "aggregate": "aggregates", "group": "server groups", "flavor": "flavors"}
    nouns |= {"image": "images", "instance": "instances", "migration": "migrations", "decision": "decisions"}
    nouns |= {"operation": "operations", "service": "services"}
    for command, noun in nouns.items():
        assert run(command, "list", "--data", tmp_path) == (0, f"no {noun}\n", "")
        assert run(command, "list", "--json", "--data", tmp_path) == (0, "[]\n", "")


def test_agents_are_listed_and_shown(folder, run):
    with serve(noun="up", folder=folder) as server:
        body = {"run": uuid_of("run"), "driver": "fake", "software": "roost 1", "nodes": []}
        assert server.ask("PUT", "/v1/agents/host-1", body, headers={"x-auth-token": "admin"})[0] == 200
        place = ("--url", server.address)
        lines = run("agent", "list", *place)[1].splitlines()
        assert re.fullmatch(r"host +state +last contact +driver +cell +nodes", lines[0])
        assert re.fullmatch(r"host-1  ready, up  (now|\d+ s ago) +fake    -     host-1", lines[1])
        (entry,) = json.loads(run("agent", "list", "--json", *place)[1])
        assert entry["heard_at"].startswith("20")
        assert json.loads(run("agent", "show", "HOST-1", "--json", *place)[1]) == entry
        text = run("agent", "show", "host-1", *place)[1]
        assert re.search(r"^heard at +20\d\d-.*Z, (now|\d+ s ago)$", text, re.MULTILINE)
        assert run("agent", "show", "none", *place)[::2] == (4, "roost: no such agent: none\n")


def test_groups_are_created_and_shown(command):
    created = json.loads(
        command("group", "create", "web", "--policy", "anti-affinity", "--max-server-per-host", "2", "--json")
    )
    assert command("group", "list", "--policy", "anti-affinity").splitlines() == [
        "name  policy         per host  members  uuid",
        f"web   anti-affinity         2        0  {created['uuid']}",
    ]
    assert "member count         0" in command("group", "show", "web")
    error = command("group", "create", "x", "--policy", "affinity", "--max-server-per-host", "2", code=2)
    assert error == "roost: --max-server-per-host: requires the policy anti-affinity, got affinity\n"


def test_second_group_of_one_name_needs_an_option(command):
    create = ("group", "create", "web", "--policy", "affinity")
    first = json.loads(command(*create, "--json"))
    error = command(*create, code=5)
    assert error.startswith(f"roost: a server group 'web' exists already: {first['uuid']}; ")
    second = json.loads(command("group", "create", "web", "--policy", "soft-affinity", "--duplicate", "--json"))
    error = command("group", "show", "web", code=2)
    assert error.startswith("roost: 2 server groups are called 'web'; use a uuid: ")
    assert set(error.partition("; use a uuid: ")[2].rstrip().split(", ")) == {
        f"{first['uuid']} (affinity)",
        f"{second['uuid']} (soft-affinity)",
    }


def test_group_is_deleted_by_name_or_uuid(command):
    for word in ("name", "uuid"):
        created = json.loads(command("group", "create", "web", "--policy", "affinity", "--json"))
        assert command("group", "delete", created[word]) == ""
        assert command("group", "list", "--json") == "[]\n"
    assert command("group", "delete", "web", code=4) == "roost: no such server group: web\n"


def test_zones_services_and_the_tree_of_aggregates_are_listed(command):
    command("aggregate", "create", "rack", "--zone", "east")
    command("aggregate", "create", "ssd")
    command("aggregate", "set", "rack", "--join", "host-1", "--join", "host-2")
    command("aggregate", "set", "ssd", "--join", "host-1")
    command("host", "set", "host-1", "--disable", "--reason", "the disk fails")
    command("host", "set", "host-2", "--disable")
    assert [line.split() for line in command("zone", "list").splitlines()] == [
        ["zone", "state", "services"],
        ["east", "unavailable", "2"],
        ["nova", "available", "1"],
    ]
    assert command("aggregate", "list", "--tree").splitlines() == [
        "zone east",
        "  rack",
        "    host-1",
        "    host-2",
        "without a zone",
        "  ssd",
        "    host-1",
    ]
    assert "no such zone: none" in command("aggregate", "list", "--tree", "--zone", "none", code=4)
    lines = command("service", "list").splitlines()
    assert len(lines) == 4
    assert lines[2].split() == ["host-1", "disabled,", "up", "-", "host-1", "the", "disk", "fails"]
    assert [each["host"] for each in json.loads(command("service", "list", "--enabled", "--json"))] == ["host-0"]
    assert command("service", "list", "--down") == "no services\n"


def test_decisions_and_operations_may_be_none(command):
    assert command("decision", "list") == "no decisions\n"
    assert command("operation", "list") == "no operations\n"
    assert command("decision", "show", "last", code=4) == "roost: no decision is stored\n"


def test_hosts_are_sorted_by_name_and_number(run, tmp_path):
    hosts = fleet(12, vcpus=4)
    with open_roost(None, tmp_path) as roost:
        roost.install(replace(hosts, providers=hosts.providers[::-1], hosts=hosts.hosts[::-1]))
    lines = run("host", "list", "--data", tmp_path)[1].splitlines()[1:]
    assert [line.split()[0] for line in lines] == [f"host-{number}" for number in range(12)]


def test_hosts_have_columns_of_free_amounts_and_used_shares(command):
    columns = "host,vcpu_free,vcpu_share,memory_mb_free,memory_mb_share,disk_gb_free,disk_gb_share"
    lines = command("host", "list", "--columns", columns, "-o", "csv").splitlines()
    assert lines[0] == columns
    free = [line.split(",")[1] for line in lines[1:]]
    used = command("host", "list", "--columns", "vcpu_used,vcpu_capacity", "-o", "csv").splitlines()[1:]
    amounts = [tuple(map(int, line.split(","))) for line in used]
    assert free == [str(capacity - used) for used, capacity in amounts]
    assert [float(line.split(",")[2]) for line in lines[1:]] == [round(used / all_, 4) for used, all_ in amounts]
    sorted_rows = json.loads(
        command("host", "list", "--columns", "memory_mb_free", "--sort", "-memory_mb_free", "--json")
    )
    assert sorted_rows == sorted(sorted_rows, key=lambda row: -row["memory_mb_free"])
    assert "vcpu_free" not in command("host", "list", "-o", "csv")


@pytest.mark.parametrize("noun", ["flavor", "image"])
def test_names_are_listed_in_natural_order(command, noun):
    more = ("--vcpus", 1) if noun == "flavor" else ()
    for name in ("rack7-10", "rack7-2"):
        command(noun, "set", name, *more)
    rows = json.loads(command(noun, "list", "--json"))
    assert [row["name"] for row in rows if row["name"].startswith("rack7")] == ["rack7-2", "rack7-10"]


def test_flavors_are_stored_and_deleted(command):
    command("flavor", "set", "small", "--vcpus", "2", "--memory-mb", "2048", "--extra-spec", "hw:cpu_policy=shared")
    assert [line.split() for line in command("flavor", "list").splitlines()[1:]] == [
        ["small", "2", "2,048", "0", "0", "0", "hw:cpu_policy=shared"]
    ]
    assert json.loads(command("flavor", "show", "small", "--json"))["vcpus"] == 2
    assert "hw:cpu_policy" in command("flavor", "set", "small", "--extra-spec", "hw:cpu_policy=some", code=2)
    command("flavor", "delete", "small")
    assert command("flavor", "show", "small", code=4) == "roost: no such flavor: small\n"


@pytest.mark.shows("S011")
def test_images_are_stored_and_deleted(command):
    command(
        "image", "set", "arm", "--disk-format", "qcow2", "--property", "architecture=armv7l", "--property", "os=a=b"
    )
    assert [line.split() for line in command("image", "list").splitlines()[1:]] == [
        ["arm", "-", "qcow2", "architecture=armv7l,", "os=a=b"]
    ]
    document = json.loads(command("image", "show", "arm", "--json"))
    assert document["properties"] == {"architecture": "armv7l", "os": "a=b"}
    assert "KEY=VALUE" in command("image", "set", "arm", "--property", "x", code=2)
    command("image", "delete", "arm")
    assert command("image", "show", "arm", code=4) == "roost: no such image: arm\n"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (
            ["host", "list", "--url", "http://127.0.0.1:1"],
            7,
            "http://127.0.0.1:1 does not answer: Connection refused\n",
        ),
        (["host", "list", "--url", "ftp://x"], 2, "--url must be http://HOST:PORT"),
        (
            ["host", "list", "--url", "http://x", "--data", "."],
            2,
            "--url cannot be combined with --config, --data or --database",
        ),
        (["host", "set", "h"], 2, "nothing to change"),
        (["host", "set", "h", "--disable", "--enable"], 2, "--disable and --enable cannot be combined"),
        (["host", "list", "--up", "--down"], 2, "--up and --down cannot be combined"),
        (["service", "list", "--up", "--down"], 2, "--up and --down cannot be combined"),
        (["service", "list", "--enabled", "--disabled"], 2, "--disabled and --enabled cannot be combined"),
        (["decision", "list", "--refused", "--granted"], 2, "--refused and --granted cannot be combined"),
        (["events", "--after", "nope"], 2, "--after must be the id of an event"),
        (["aggregate", "set", "a"], 2, "nothing to change"),
        (["aggregate", "create", "a", "--metadata", "x"], 2, "--metadata must be KEY=VALUE, got 'x'"),
        (["group", "create", "g", "--policy", "apart"], 2, "apart"),
    ],
)
def test_invalid_request_is_refused_in_one_sentence(run, words, code, sentence):
    exit_code, output, error = run(*words)
    assert (exit_code, output, error.count("\n"), sentence in error) == (code, "", 1, True), error


def test_database_in_use_is_readable_and_not_writable(run, folder):
    with serve(noun="up", folder=folder):
        assert run("host", "list", "--data", folder)[0] == 0
        assert run("host", "set", "host-0", "--disable", "--data", folder)[0] == 7


def test_database_option_wins_over_a_server_of_the_environment(run, folder, monkeypatch):
    monkeypatch.setenv("ROOST_URL", "http://127.0.0.1:1")
    for words in (("host", "list"), ("audit",), ("capacity", "--flavor", "vcpus=1")):
        assert run(*words, "--data", folder)[0] == 0, words
        assert run(*words)[0] == 7, words


def test_token_option_is_sent_to_the_server(run, folder):
    with serve(noun="up", folder=folder) as server:
        code, _, error = run("host", "list", "--url", server.address, "--token", "joe")
    assert (code, "your token has no role; with auth_strategy noauth2" in error) == (10, True)


def test_record_of_a_disabled_host_names_its_client(command):
    command("host", "set", "host-1", "--disable", "--reason", "bad disk")
    command("host", "set", "host-1", "--enable")
    command("flavor", "set", "small", "--vcpus", "1", "--memory-mb", "64")
    (disabled,) = json.loads(command("change", "list", "--object", "host-1", "--kind", "host.disable", "--json"))
    assert (disabled["object"], disabled["details"]) == ("host-1", {"reason": "bad disk"})
    assert disabled["user_id"]
    lines = command("change", "list").splitlines()
    assert lines[0].split() == ["time", "user", "project", "kind", "object", "details"]
    assert [line.split()[4] for line in lines[1:4]] == ["flavor.create", "host.enable", "host.disable"]
    assert [line.split()[4] for line in command("change", "list", "--newest", "1").splitlines()[1:2]] == [
        "flavor.create"
    ]
    assert json.loads(command("change", "list", "--until", "2001-01-01", "--json")) == []
    assert len(json.loads(command("change", "list", "--since", "1h", "--all", "--json"))) == 3
    assert "must be like 90m" in command("change", "list", "--since", "soon", code=2)


def test_truncated_list_of_changes_says_that_older_ones_exist(run, folder):
    for vcpus in (1, 2):
        assert run("flavor", "set", "small", "--vcpus", vcpus, "--data", folder)[0] == 0
    for words, notes in ((("--newest", 1), 1), (("--newest", 2), 0), (("--all",), 0), ((), 0)):
        _, output, error = run("change", "list", "--kind", "flavor", *words, "-o", "csv", "--data", folder)
        assert error == "older changes exist; raise --newest, or give --all, to see them\n" * notes, words
        assert len(output.splitlines()) == (2 if notes else 3)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("host list --zone nowhere", 4, "no such zone: nowhere; `roost zone list` shows the zones"),
        ("aggregate list --zone nov", 4, "no such zone: nov; did you mean 'nova'?"),
        ("aggregate list --tree --zone nov", 4, "no such zone: nov; did you mean 'nova'?"),
        (
            "why 43",
            4,
            "no such decision or instance: 43; name a decision by its uuid or at least 4 of",
        ),
        (
            "change list --since 2026-13-01",
            2,
            "--since: '2026-13-01' is not a date and time of the calendar: month",
        ),
    ],
)
def test_unknown_name_or_wrong_time_has_a_clear_sentence(command, words, code, sentence):
    assert command(*words.split(), code=code).startswith(f"roost: {sentence}")


def test_url_with_the_version_of_the_api_is_explained(run, folder):
    with serve(noun="up", folder=folder) as server:
        url = server.address
        for words in (("host", "list"), ("events", "--count", "1")):
            problem = f"roost: {url}/v1/ must not end with /v1; use {url}\n"
            assert run(*words, "--url", f"{url}/v1/") == (2, "", problem)
        assert run("host", "list", "--url", f"{url}/")[0] == 0
