"""``roost-manage placement …``: effects and exit codes."""

import sqlite3
from contextlib import closing, nullcontext
from unittest.mock import Mock

import msgspec
import pytest

from roost.cli import manage
from roost.direct import delete_orphans, heal_allocations, sync_aggregates
from roost.errors import Conflict, NotFound, PlacementGone
from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.host import Aggregate
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.store.backends import open_store
from tests.support.agents.driver_doubles import spec_of
from tests.support.agents.trackers import HELD, HOST
from tests.support.fleets.worlds import host, merge_fleets, roost_on, uuid_named
from tests.support.servers.unserved_database import HostDatabase

SMALL = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 2}


@pytest.fixture
def database(tmp_path):
    """Return the database of a stopped server."""
    return HostDatabase(tmp_path)


@pytest.fixture
def run(database, monkeypatch, capsys):
    """Return a function that runs ``roost-manage placement`` and returns exit code, output and error."""

    def run(*words, folder=database.folder, config=None):
        settings = () if config is None else ("--config", str(config))
        words = ["roost-manage", "--data", str(folder), *settings, "placement", *map(str, words)]
        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as end:
            manage.main()
        return end.value.code, *capsys.readouterr()

    return run


def healed_allocations(database, **amounts):
    """Return the allocations of a healed instance."""
    return {database.uuid(HOST): SMALL | amounts}


# --- heal_allocations ---


def test_heal_exits_0_and_allocates_for_instances_without_allocations(database, run):
    database.instance(1, "one")
    database.instance(2, "lost")
    database.instance(3, "deleted", status="DELETED")
    database.instance(4, "offloaded", status="SHELVED_OFFLOADED", host="", node="")
    database.instance(5, "nowhere", status="ERROR", host="", node="")
    database.instance(6, "busy", task="spawning")
    code, output, _ = run("heal_allocations", "--verbose")
    assert (code, output.splitlines()[-1]) == (0, "2 instances healed")
    assert database.held("lost") == healed_allocations(database)
    assert database.held("one") == {database.uuid(HOST): HELD}
    assert [database.held(name) for name in ("deleted", "offloaded", "nowhere", "busy")] == [{}] * 4
    assert f"instance {database.uuid('busy')} is skipped: it has a task in progress (spawning)" in output
    # A second run has nothing to do.
    before = database.dump()
    assert run("heal_allocations")[0] == 4
    assert database.dump() == before


def test_heal_exits_0_and_corrects_the_project_but_not_the_amounts(database, run):
    database.instance(1, "one", project_id="another")
    assert run("heal_allocations")[0] == 0
    with database.machine() as machine:
        result = machine.world.ask("GET", f"/allocations/{database.uuid('one')}")
    assert result["project_id"] == "another"
    assert database.held("one") == {database.uuid(HOST): HELD}


def test_forced_heal_exits_0_and_allocates_the_amounts_of_the_flavor(database, run):
    database.instance(1, "one")
    assert run("heal_allocations", "--instance", database.uuid("one"), "--force")[0] == 0
    assert database.held("one") == healed_allocations(database)
    assert run("heal_allocations", "--instance", database.uuid("one"), "--force")[0] == 4


def test_heal_exits_0_and_allocates_on_child_providers(database, run):
    assert run("migrate_compute_inventory", *host_arguments(database, "numa"))[0] == 0
    database.instance(1, "lost")
    assert run("heal_allocations")[0] == 0
    amounts = database.held("lost")
    assert amounts.pop(database.uuid(HOST)) == {"DISK_GB": 2}
    assert list(amounts.values()) == [{"VCPU": 1, "MEMORY_MB": 512}]


def test_heal_exits_1_at_max_count_and_heals_the_oldest_first(database, run):
    for number in (3, 1, 2):
        database.instance(number, f"lost {number}")
    assert run("heal_allocations", "--max-count", 2)[:2] == (1, "2 instances healed\n")
    assert [bool(database.held(f"lost {number}")) for number in (1, 2, 3)] == [True, True, False]


def test_heal_exits_2_if_the_node_has_no_provider(database, run):
    database.instance(1, "lost", node="nowhere")
    code, _, error = run("heal_allocations")
    assert code == 2
    assert "is on node nowhere, and no host has such a node" in error


def test_heal_exits_3_if_the_allocation_does_not_fit(database, run):
    database.instance(1, "lost", flavor=Flavor(name="large", vcpus=1, memory_mb=10**6))
    code, _, error = run("heal_allocations")
    assert code == 3
    assert "cannot hold" in error
    assert database.held("lost") == {}


def test_heal_stops_at_the_first_refusal_and_counts_the_rest(database, run):
    database.instance(1, "large", flavor=Flavor(name="large", vcpus=1, memory_mb=10**6))
    database.instance(2, "lost")
    database.instance(3, "elsewhere", cell="b")
    code, output, error = run("heal_allocations")
    assert (code, output) == (3, "0 instances healed\n")
    last = error.splitlines()[-1]
    assert last == "roost-manage: 2 further instances were not checked; --instance <uuid> heals one of them"
    assert "1 further instances were not" in run("heal_allocations", "--cell", "")[2]
    assert run("heal_allocations", "--instance", database.uuid("lost"))[0] == 0
    assert database.held("lost") == healed_allocations(database)


def test_heal_dry_run_exits_4_and_changes_nothing(database, run):
    database.instance(1, "lost")
    before = database.dump()
    code, output, _ = run("heal_allocations", "--dry-run")
    assert code == 4
    assert f"instance {database.uuid('lost')} would hold 1 VCPU, 512 MEMORY_MB, 2 DISK_GB of provider" in output
    assert "1 instances would be healed" in output
    assert database.dump() == before


def test_heal_exits_4_if_the_cell_has_nothing_to_heal(database, run):
    database.instance(1, "lost", cell="a")
    assert run("heal_allocations", "--cell", "b")[0] == 4
    assert run("heal_allocations", "--cell", "a")[0] == 0


@pytest.mark.parametrize("specs", [{"resources:VGPU": "1"}, {"accel:device_profile": "card"}])
def test_heal_exits_8_for_a_device_that_only_the_host_knows(database, run, specs):
    database.instance(1, "lost", flavor=Flavor(name="gpu", vcpus=1, extra_specs=specs))
    assert run("heal_allocations")[0] == 8
    assert database.held("lost") == {}


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--max-count", "0"), "--max-count must be a whole number of 1 or more, got '0'"),
        (("--max-count", "many"), "--max-count must be"),
        (("--force",), "--force needs --instance"),
        (("--instance", "x", "--cell", "y"), "cannot be combined"),
        (("--instance", "x", "--max-count", "1"), "cannot be combined"),
        (("--instance", "x"), "no such instance: x"),
    ],
)
def test_heal_exits_127_for_invalid_arguments(database, run, more, problem):
    before = database.dump()
    code, _, error = run("heal_allocations", *more)
    assert code == 127
    assert error.startswith(f"roost-manage: {problem}") or problem in error
    assert database.dump() == before


# --- audit ---


@pytest.fixture
def leaky_database(database):
    """Return a database with allocations of a live and a deleted instance, a migration, and an unknown consumer."""
    database.instance(1, "one")
    database.instance(2, "two", status="DELETED")
    with database.machine() as machine:
        machine.world.hold("migration", **{HOST: {"VCPU": 1}})
        machine.world.hold("ended", **{HOST: {"CUSTOM_FPGA": 1}})
    database.migration("migration")
    return database


def test_audit_exits_0_without_findings(database, run):
    database.instance(1, "one")
    database.instance(2, "two")
    assert run("audit", "--verbose")[:2] == (0, "no orphaned allocations\n")


def test_audit_exits_1_if_a_deletion_fails(leaky_database, run):
    with closing(sqlite3.connect(leaky_database.path)) as connection:
        connection.execute(
            "CREATE TRIGGER kept BEFORE DELETE ON consumer BEGIN SELECT RAISE(ABORT, 'consumers are kept'); END"
        )
    code, _, error = run("audit", "--delete")
    assert code == 1
    assert f"roost-manage: consumer {leaky_database.uuid('two')}: " in error
    assert "consumers are kept" in error
    assert leaky_database.held("two")


def test_audit_exits_3_if_it_finds_orphaned_allocations(leaky_database, run):
    before = leaky_database.dump()
    code, output, _ = run("audit")
    assert code == 3
    two = leaky_database.uuid("two")
    assert {line.split()[1] for line in output.splitlines()} == {two}
    assert f"consumer {two} holds 1 VGPU on provider {leaky_database.uuid(HOST)}" in output
    assert leaky_database.dump() == before
    assert run("audit", "--resource_provider", leaky_database.uuid(HOST))[0] == 3


def test_audit_exits_4_after_the_deletion_of_orphans(leaky_database, run):
    assert run("audit", "--delete")[0] == 4
    assert [bool(leaky_database.held(name)) for name in ("one", "two", "migration", "ended")] == [
        True,
        False,
        True,
        True,
    ]
    assert run("audit")[0] == 0


def test_audit_deletes_only_allocations_on_another_host(database, run):
    database.instance(1, "one")
    database.instance(2, "two")
    assert run("heal_allocations")[0] == 0
    with database.machine() as machine:
        machine.world.provider("other", VCPU=8, MEMORY_MB=4096)
        result = machine.world.ask("GET", f"/allocations/{database.uuid('one')}")
        machine.world.hold("one", result["consumer_generation"], **{HOST: HELD, "other": {"VCPU": 1, "MEMORY_MB": 512}})
    assert run("audit")[0] == 0  # The other provider is not a host yet.
    database.register("other")
    code, output, _ = run("audit")
    assert (code, len(output.splitlines())) == (3, 2)
    consumer, other = database.uuid("one"), database.uuid("other")
    assert f"consumer {consumer} holds 1 VCPU on provider {other}, and is an instance on another host" in output
    assert run("audit", "--resource_provider", database.uuid(HOST))[0] == 0
    assert run("audit", "--delete", "--resource_provider", other)[0] == 4
    assert database.held("one") == {database.uuid(HOST): HELD}
    assert (run("audit")[0], run("heal_allocations")[0]) == (0, 4)


def test_audit_exits_127_for_an_unknown_provider(leaky_database, run):
    for uuid in ("nonsense", leaky_database.uuid("nowhere")):
        code, _, error = run("audit", "--resource_provider", uuid)
        assert code == 127
        assert uuid in error


# --- sync_aggregates ---


def test_sync_aggregates_exits_0_and_adds_providers_to_aggregates(database, run):
    # In another folder, because this database has no hosts.
    with closing(open_store(database.folder / "fleet.db", settings=StoreSettings())) as store:
        fleet = Fleet(aggregates=[Aggregate(uuid=uuid_named("gold"), name="gold")])
        roost_on(store).install(merge_fleets(fleet, host("a", aggregates=["gold"]), host("b")))
    (database.folder / "fleet").mkdir()
    (database.folder / "fleet.db").rename(database.folder / "fleet" / "roost.db")
    result = run("sync_aggregates", "--verbose", folder=database.folder / "fleet")
    assert result[:2] == (0, f"the provider of node a is in aggregate {uuid_named('gold')}\n")
    assert run("sync_aggregates")[:2] == (0, "")


def test_migrate_exits_127_if_the_provider_config_folder_is_missing(database, run):
    before = database.dump()
    code, _, error = run("migrate_compute_inventory", "--driver", "fake", "--provider-config", "gone")
    assert (code, error) == (127, "roost-manage: --provider-config: there is no folder gone\n")
    assert database.dump() == before


@pytest.mark.parametrize(
    ("error", "code"), [(PlacementGone("away"), 2), (Conflict("race"), 3), (NotFound("provider", "a"), 6)]
)
def test_sync_aggregates_exit_code_reflects_the_placement_error(run, monkeypatch, error, code):
    class Failing:
        def aggregate_add_host(self, uuid, node):
            raise error

    monkeypatch.setattr(sync_aggregates, "read_hosts", lambda _: {"uuid": ["a"]})
    monkeypatch.setattr(sync_aggregates, "open_report", lambda _: nullcontext(Failing()))
    result = run("sync_aggregates")
    assert (result[0], result[2]) == (code, f"roost-manage: {error}\n")


# --- migrate_compute_inventory ---


def host_arguments(database, layout, *more, fault=None):
    """Return the arguments that name the host."""
    return (*database.words(layout, fault=fault), *more)


@pytest.mark.shows("S131")
def test_migrate_exits_0_and_a_second_run_changes_nothing(database, run):
    assert run("migrate_compute_inventory", *host_arguments(database, "gpus"))[:2] == (0, f"{database.host}: moved\n")
    before = database.dump()
    assert run("migrate_compute_inventory", *host_arguments(database, "gpus"))[:2] == (0, "")
    assert database.dump() == before


def test_migrate_applies_the_agent_settings(database, run):
    config = database.folder / "roost.toml"
    config.write_text("[agent]\nreserved_host_cpus = 2\n")
    assert run("migrate_compute_inventory", *host_arguments(database, "gpus"), config=config)[0] == 0
    with database.machine() as machine:
        assert machine.world.of(HOST, "inventories")["VCPU"]["reserved"] == 2


def test_migrate_exits_1_if_the_reshape_fails(database, run):
    uuid = database.uuid("one")
    less = msgspec.structs.replace(spec_of("one", database.host), uuid=uuid)
    database.driver("flat").spawn(less, "another operation")
    before = database.dump()
    code, _, error = run("migrate_compute_inventory", *host_arguments(database, "gpus"))
    assert code == 1
    assert f"{uuid} holds 1 VGPU and uses none on the new providers" in error
    assert database.dump() == before


@pytest.mark.parametrize("more", [("--node", "nowhere"), ("--host", "another")])
def test_migrate_exits_2_for_an_unknown_node(database, run, more):
    assert run("migrate_compute_inventory", *host_arguments(database, "gpus", *more))[0] == 2


@pytest.mark.parametrize("more", [("--driver", "metal"), ("--option", "colour=red"), ("--term", "x")])
def test_migrate_exits_127_for_invalid_driver_arguments(database, run, more):
    assert run("migrate_compute_inventory", *host_arguments(database, "gpus", *more))[0] == 127


@pytest.mark.parametrize(("kind", "prefix"), [("unready", ""), ("crash", "host  host: FakeCrash: ")])
def test_migrate_exits_255_if_the_driver_fails(database, run, kind, prefix):
    code, _, error = run("migrate_compute_inventory", *host_arguments(database, "gpus", fault=("start", kind)))
    message = f"roost-manage: {prefix}start on {database.host} was made to fail ({kind})"
    assert (code, error.splitlines()[-1]) == (255, message)


# --- all commands ---

ACTS = ("heal_allocations", "audit", "sync_aggregates", "migrate_compute_inventory")


@pytest.mark.parametrize("act", ACTS)
def test_command_exits_255_if_a_server_runs_or_no_database_exists(database, run, act):
    database.instance(1, "one")
    more = host_arguments(database, "gpus") if act == ACTS[-1] else ()
    with database.machine():
        code, _, error = run(act, *more)
        assert (code, "roost-manage: " in error) == (255, True)
    assert run(act, *more, folder=database.folder / "nowhere")[0] == 255


@pytest.mark.parametrize(
    ("act", "where", "name"),
    [
        (ACTS[0], heal_allocations, "heal"),
        (ACTS[1], delete_orphans, "find"),
        (ACTS[2], sync_aggregates, "sync_aggregates"),
    ],
)
def test_command_exits_255_on_an_unexpected_exception(run, monkeypatch, act, where, name):
    monkeypatch.setattr(where, name, Mock(side_effect=RuntimeError("odd")))
    code, _, error = run(act)
    assert (code, error.splitlines()[-1]) == (255, "RuntimeError: odd")


def test_program_exits_127_without_a_command(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["roost-manage"])
    with pytest.raises(SystemExit) as end:
        manage.main()
    assert (end.value.code, "usage: roost-manage" in capsys.readouterr().out) == (127, True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("audit", "--many"), "unrecognized arguments: --many"),
        (("heal_allocations", "--cell"), "argument --cell: expected one argument"),
        (("migrate_compute_inventory",), "the following arguments are required: --driver"),
        (("heal",), "invalid choice: 'heal'"),
    ],
)
def test_program_exits_127_for_an_unknown_option_or_command(run, words, problem):
    code, _, error = run(*words)
    assert code == 127
    assert error.startswith("usage: roost-manage")
    assert problem in error


def test_help_exits_0_and_lists_the_options(run):
    code, output, _ = run("heal_allocations", "--help")
    assert (code, "--max-count" in output) == (0, True)


def test_placement_conf_may_name_the_database(database, monkeypatch, capsys):
    conf = database.folder / "placement.conf"
    conf.write_text(f"[placement_database]\nconnection = sqlite:///{database.path}\n")
    database.instance(1, "lost")
    monkeypatch.setattr("sys.argv", ["roost-manage", "--config-file", str(conf), "placement", "heal_allocations"])
    with pytest.raises(SystemExit) as end:
        manage.main()
    assert (end.value.code, capsys.readouterr().out) == (0, "1 instances healed\n")
