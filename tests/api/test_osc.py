"""Every command of osc-placement, run by the real client against a real server."""

import hashlib

import pytest

from roost.api.access.authentication import Token, as_toml
from tests.support.fleets.worlds import uuid_named
from tests.support.servers.openstack_client import HOW_TO_INSTALL, TOKEN, Client, Openstack, python
from tests.support.servers.servers import serve

pytestmark = [pytest.mark.skipif(python() is None, reason=HOW_TO_INSTALL), pytest.mark.long]


@pytest.fixture(scope="session")
def client():
    """A process that runs client commands."""
    client = Client()
    yield client
    client.stop()


# The database makes no difference to the client, and commands are slow: other pairs run in the soak tests.
ON_BOTH = ["sqlite", pytest.param("postgresql", marks=pytest.mark.soak)]
OLDER = [
    pytest.param(database, version, marks=[] if at == number % 2 else pytest.mark.soak)
    for number, version in enumerate(("1.0", "1.8", "1.12", "1.28"))
    for at, database in enumerate(("sqlite", "postgresql"))
]


@pytest.fixture
def server(request, tmp_path):
    """The address of a server with an empty database; the client is an administrator."""
    salt = bytes(16)
    token_hash = f"{salt.hex()}:{hashlib.sha256(salt + TOKEN.encode()).hexdigest()}"
    (tmp_path / "tokens.toml").write_text(as_toml(Token(name="openstack", sha256=token_hash, roles=("admin",))))
    url = str(tmp_path / "roost.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    settings = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"'
    with serve("--database", url, settings=settings, folder=tmp_path) as client:
        yield client.address


@pytest.fixture
def openstack(client, server):
    """A function that returns the client for a microversion."""
    return lambda version: Openstack(client, server, version)


ONE, TWO, CHILD = map(uuid_named, ("one", "two", "child"))
RACK, ROW = map(uuid_named, ("rack", "row"))
CONSUMER = uuid_named("consumer")
PLAIN = {"reserved": 0, "min_unit": 1, "max_unit": 2147483647, "step_size": 1, "allocation_ratio": 1.0}


@pytest.mark.parametrize("server", ON_BOTH, indirect=True)
def test_every_command_works_in_the_newest_version(openstack):
    newest = openstack("1.39")
    for chapter in (classes, traits, providers, inventories, labels, allocations, candidates, deletions):
        chapter(newest)
    assert sorted(newest.ran) == newest.commands()
    assert len(newest.ran) == 31


def classes(openstack):
    openstack.do("resource class create", "CUSTOM_FISH")
    assert "already exists: CUSTOM_FISH (HTTP 409)" in openstack.fail("resource class create", "CUSTOM_FISH")
    openstack.do("resource class set", "CUSTOM_FISH")
    openstack.do("resource class set", "CUSTOM_BIRD")
    names = [each["name"] for each in openstack.show("resource class list")]
    assert names[0] == "VCPU"
    assert names[-2:] == ["CUSTOM_FISH", "CUSTOM_BIRD"]
    assert openstack.show("resource class show", "CUSTOM_FISH") == {"name": "CUSTOM_FISH"}
    openstack.do("resource class delete", "CUSTOM_BIRD")
    assert openstack.fail("resource class show", "CUSTOM_BIRD") == "No such resource class CUSTOM_BIRD. (HTTP 404)"


def traits(openstack):
    for name in ("CUSTOM_GOLD", "CUSTOM_LEAD"):
        openstack.do("trait create", name)
    assert openstack.show("trait list", "--name", "startswith:CUSTOM") == [
        {"name": "CUSTOM_GOLD"},
        {"name": "CUSTOM_LEAD"},
    ]
    assert openstack.show("trait show", "CUSTOM_GOLD") == {"name": "CUSTOM_GOLD"}
    openstack.do("trait delete", "CUSTOM_LEAD")
    assert "No such trait" in openstack.fail("trait show", "CUSTOM_LEAD")


def providers(openstack):
    created = {"uuid": ONE, "name": "one", "generation": 0, "root_provider_uuid": ONE, "parent_provider_uuid": None}
    assert openstack.show("resource provider create", "one", "--uuid", ONE) == created
    openstack.show("resource provider create", "two", "--uuid", TWO)
    child = openstack.show("resource provider create", "child", "--uuid", CHILD, "--parent-provider", ONE)
    assert (child["root_provider_uuid"], child["parent_provider_uuid"]) == (ONE, ONE)
    assert "already exists" in openstack.fail("resource provider create", "one")
    assert openstack.show("resource provider list", "--name", "one") == [created]
    assert len(openstack.show("resource provider list")) == 3
    assert {each["name"] for each in openstack.show("resource provider list", "--in-tree", CHILD)} == {"one", "child"}
    renamed = openstack.show("resource provider set", ONE, "--name", "first")
    assert renamed["name"] == "first"
    assert openstack.show("resource provider show", ONE) == created | {"name": "first"}
    shown = openstack.show("resource provider show", ONE, "--allocations")
    assert shown["allocations"] == {}


def inventories(openstack):
    def table(rows):
        return {row.pop("resource_class"): row for row in rows}

    assert table(
        openstack.show(
            "resource provider inventory set",
            ONE,
            "--resource",
            "VCPU=8",
            "--resource",
            "MEMORY_MB=1024",
            "--resource",
            "MEMORY_MB:step_size=128",
        )
    ) == {
        "VCPU": PLAIN | {"total": 8},
        "MEMORY_MB": PLAIN | {"total": 1024, "step_size": 128},
    }
    one_class = openstack.show("resource provider inventory class set", ONE, "VCPU", "--total", 16, "--max_unit", 4)
    assert one_class == PLAIN | {"total": 16, "max_unit": 4}
    assert openstack.show("resource provider inventory show", ONE, "VCPU") == one_class | {"used": 0}
    listed = table(openstack.show("resource provider inventory list", ONE))
    assert listed["VCPU"] == one_class | {"used": 0}
    amended = openstack.show(
        "resource provider inventory set", ONE, "--amend", "--resource", "DISK_GB=10", "--resource", "CUSTOM_FISH=2"
    )
    assert len(amended) == 4
    openstack.do("resource provider inventory delete", ONE, "--resource-class", "DISK_GB")
    assert "No inventory of class DISK_GB" in openstack.fail("resource provider inventory show", ONE, "DISK_GB")
    openstack.show("resource provider inventory set", CHILD, "--resource", "VGPU=1")
    openstack.do("resource provider inventory delete", CHILD)
    assert openstack.show("resource provider inventory list", CHILD) == []


def labels(openstack):
    generation = openstack.show("resource provider show", ONE)["generation"]
    joined = openstack.show(
        "resource provider aggregate set", ONE, "--generation", generation, "--aggregate", RACK, "--aggregate", ROW
    )
    assert joined == [{"uuid": RACK}, {"uuid": ROW}]
    assert "generation" in openstack.fail("resource provider aggregate set", ONE, "--generation", generation)
    assert openstack.show("resource provider aggregate list", ONE) == joined
    assert [each["uuid"] for each in openstack.show("resource provider list", "--member-of", RACK)] == [ONE]
    provider_traits = openstack.show(
        "resource provider trait set", ONE, "--trait", "CUSTOM_GOLD", "--trait", "HW_CPU_X86_AVX"
    )
    assert provider_traits == [{"name": "CUSTOM_GOLD"}, {"name": "HW_CPU_X86_AVX"}]
    assert sorted(each["name"] for each in openstack.show("resource provider trait list", ONE)) == [
        "CUSTOM_GOLD",
        "HW_CPU_X86_AVX",
    ]
    assert openstack.show("trait list", "--associated", "--name", "startswith:CUSTOM") == [{"name": "CUSTOM_GOLD"}]
    assert "in use" in openstack.fail("trait delete", "CUSTOM_GOLD")
    assert [each["uuid"] for each in openstack.show("resource provider list", "--required", "CUSTOM_GOLD")] == [ONE]


def allocations(openstack):
    openstack.show("resource provider inventory set", TWO, "--resource", "DISK_GB=100")
    owner = ["--project-id", "acme", "--user-id", "ann", "--consumer-type", "INSTANCE"]
    on_one, on_two = f"rp={ONE},VCPU=2,MEMORY_MB=256", f"rp={TWO},DISK_GB=10"
    allocation_rows = openstack.show(
        "resource provider allocation set", CONSUMER, "--allocation", on_one, "--allocation", on_two, *owner
    )
    assert {row["resource_provider"]: row["resources"] for row in allocation_rows} == {
        ONE: {"VCPU": 2, "MEMORY_MB": 256},
        TWO: {"DISK_GB": 10},
    }
    assert {(row["project_id"], row["user_id"], row["consumer_type"]) for row in allocation_rows} == {
        ("acme", "ann", "INSTANCE")
    }
    assert openstack.show("resource provider allocation show", CONSUMER) == allocation_rows
    assert openstack.show("resource provider usage show", ONE) == [
        {"resource_class": "VCPU", "usage": 2},
        {"resource_class": "MEMORY_MB", "usage": 256},
        {"resource_class": "CUSTOM_FISH", "usage": 0},
    ]
    # From 1.38 on, the client shows consumer types in the column of classes.
    assert openstack.show("resource usage show", "acme", "--user-id", "ann") == [
        {"resource_class": "INSTANCE", "usage": {"VCPU": 2, "MEMORY_MB": 256, "DISK_GB": 10, "consumer_count": 1}}
    ]
    remaining = openstack.show("resource provider allocation unset", CONSUMER, "--provider", TWO)
    assert [row["resource_provider"] for row in remaining] == [ONE]
    other = uuid_named("other")
    assert "VCPU" in openstack.fail(
        "resource provider allocation set", other, "--allocation", f"rp={ONE},VCPU=5", *owner
    )
    assert "It has child resource providers" in openstack.fail("resource provider delete", ONE)
    openstack.do("resource provider delete", CHILD)
    assert "has allocations" in openstack.fail("resource provider delete", ONE)


def candidates(openstack):
    client = openstack.show("allocation candidate list", "--resource", "VCPU=1", "--required", "CUSTOM_GOLD")
    assert [(row["#"], row["allocation"], row["resource provider"]) for row in client] == [(1, "VCPU=1", ONE)]
    assert openstack.show("allocation candidate list", "--resource", "VCPU=1", "--forbidden", "CUSTOM_GOLD") == []
    groups = ["--group", 1, "--resource", "VCPU=1", "--group", 2, "--resource", "MEMORY_MB=128"]
    both = openstack.show("allocation candidate list", *groups, "--group-policy", "none", "--limit", 5)
    assert {row["resource provider"] for row in both} == {ONE}


def deletions(openstack):
    openstack.do("resource provider allocation delete", CONSUMER)
    assert openstack.show("resource provider allocation show", CONSUMER) == []
    openstack.do("resource provider trait delete", ONE)
    assert openstack.show("resource provider trait list", ONE) == []
    for uuid in (ONE, TWO):
        openstack.do("resource provider delete", uuid)
    assert openstack.show("resource provider list") == []


@pytest.mark.parametrize(("server", "version"), OLDER, indirect=["server"])
def test_commands_work_in_older_versions(openstack, version):
    older, minor = openstack(version), int(version[2:])
    created = older.show("resource provider create", "one", "--uuid", ONE)
    assert (created["name"], created["generation"], "root_provider_uuid" in created) == ("one", 0, minor >= 14)
    shown = older.show("resource provider inventory set", ONE, "--resource", "VCPU=8")
    assert shown == [PLAIN | {"resource_class": "VCPU", "total": 8}]
    owner = ["--project-id", "acme", "--user-id", "ann"] if minor >= 8 else []
    allocation_rows = older.show(
        "resource provider allocation set", CONSUMER, "--allocation", f"rp={ONE},VCPU=2", *owner
    )
    assert [(row["resource_provider"], row["resources"]) for row in allocation_rows] == [(ONE, {"VCPU": 2})]
    assert ("project_id" in allocation_rows[0]) == (minor >= 12)
    assert older.show("resource provider usage show", ONE) == [{"resource_class": "VCPU", "usage": 2}]
    for command, words, since in (
        ("resource class set", ["CUSTOM_FISH"], 7),
        ("trait create", ["CUSTOM_GOLD"], 6),
    ):
        if minor >= since:
            older.do(command, *words)
        else:
            assert f"requires at least version 1.{since}" in older.fail(command, *words)
    if minor >= 1:
        words = ["--generation", 2] if minor >= 19 else []
        joined = older.show("resource provider aggregate set", ONE, "--aggregate", RACK, *words)
        assert joined == [{"uuid": RACK}]
    if minor >= 9:
        usage = older.show("resource usage show", "acme")
        assert usage == [{"resource_class": "VCPU", "usage": 2}]
    if minor >= 10:
        client = older.show("allocation candidate list", "--resource", "VCPU=6")
        assert [row["inventory used/capacity"] for row in client] == ["VCPU=2/8"]
    older.do("resource provider allocation delete", CONSUMER)
    older.do("resource provider inventory delete", ONE, "--resource-class", "VCPU")
    older.do("resource provider delete", ONE)
    assert older.show("resource provider list") == []
