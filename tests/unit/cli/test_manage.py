"""``roost-manage placement …``: what it does, and its exit codes."""

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
from tests.support.fleets.worlds import host, joined, roost_on, uuid_named
from tests.support.servers.unserved_database import Stopped

SMALL = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 2}


@pytest.fixture
def stopped(tmp_path):
    """Give a database that nobody serves."""
    return Stopped(tmp_path)


@pytest.fixture
def run(stopped, monkeypatch, capsys):
    """Run a command of ``roost-manage placement`` on the database; give exit code, output and error."""

    def run(*words, folder=stopped.folder, config=None):
        settings = () if config is None else ("--config", str(config))
        words = ["roost-manage", "--data", str(folder), *settings, "placement", *map(str, words)]
        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as end:
            manage.main()
        return end.value.code, *capsys.readouterr()

    return run


def healed(stopped, **amounts):
    """Give what an instance holds that was healed."""
    return {stopped.uuid(HOST): SMALL | amounts}


# --- heal_allocations ---


def test_0_instances_that_hold_nothing_hold_what_their_flavor_says_and_others_stay(stopped, run):
    stopped.instance(1, "one")
    stopped.instance(2, "lost")
    stopped.instance(3, "deleted", status="DELETED")
    stopped.instance(4, "offloaded", status="SHELVED_OFFLOADED", host="", node="")
    stopped.instance(5, "nowhere", status="ERROR", host="", node="")
    stopped.instance(6, "busy", task="spawning")
    code, said, _ = run("heal_allocations", "--verbose")
    assert (code, said.splitlines()[-1]) == (0, "2 instances healed")
    assert stopped.held("lost") == healed(stopped)
    assert stopped.held("one") == {stopped.uuid(HOST): HELD}
    assert [stopped.held(name) for name in ("deleted", "offloaded", "nowhere", "busy")] == [{}] * 4
    assert f"instance {stopped.uuid('busy')} is skipped: it has a task in progress (spawning)" in said
    # And then there is nothing to do.
    before = stopped.dump()
    assert run("heal_allocations")[0] == 4
    assert stopped.dump() == before


def test_0_an_instance_gets_its_own_project_and_user_and_keeps_what_it_holds(stopped, run):
    stopped.instance(1, "one", project_id="another")
    assert run("heal_allocations")[0] == 0
    with stopped.machine() as machine:
        found = machine.world.ask("GET", f"/allocations/{stopped.uuid('one')}")
    assert found["project_id"] == "another"
    assert stopped.held("one") == {stopped.uuid(HOST): HELD}


def test_0_an_instance_that_is_forced_holds_what_its_flavor_says(stopped, run):
    stopped.instance(1, "one")
    assert run("heal_allocations", "--instance", stopped.uuid("one"), "--force")[0] == 0
    assert stopped.held("one") == healed(stopped)
    assert run("heal_allocations", "--instance", stopped.uuid("one"), "--force")[0] == 4


def test_0_where_the_node_offers_it_on_children_it_is_held_there(stopped, run):
    assert run("migrate_compute_inventory", *words(stopped, "numa"))[0] == 0
    stopped.instance(1, "lost")
    assert run("heal_allocations")[0] == 0
    held = stopped.held("lost")
    assert held.pop(stopped.uuid(HOST)) == {"DISK_GB": 2}
    assert list(held.values()) == [{"VCPU": 1, "MEMORY_MB": 512}]


def test_1_no_more_than_so_many_are_healed_the_oldest_first(stopped, run):
    for number in (3, 1, 2):
        stopped.instance(number, f"lost {number}")
    assert run("heal_allocations", "--max-count", 2)[:2] == (1, "2 instances healed\n")
    assert [bool(stopped.held(f"lost {number}")) for number in (1, 2, 3)] == [True, True, False]


def test_2_a_node_without_a_provider(stopped, run):
    stopped.instance(1, "lost", node="nowhere")
    code, _, error = run("heal_allocations")
    assert code == 2
    assert "is on node nowhere, of which there is no host" in error


def test_3_what_placement_refuses(stopped, run):
    stopped.instance(1, "lost", flavor=Flavor(name="large", vcpus=1, memory_mb=10**6))
    code, _, error = run("heal_allocations")
    assert code == 3
    assert "cannot hold" in error
    assert stopped.held("lost") == {}


def test_3_the_first_that_is_refused_ends_it_and_those_after_it_are_counted(stopped, run):
    stopped.instance(1, "large", flavor=Flavor(name="large", vcpus=1, memory_mb=10**6))
    stopped.instance(2, "lost")
    stopped.instance(3, "elsewhere", cell="b")
    code, said, error = run("heal_allocations")
    assert (code, said) == (3, "0 instances healed\n")
    last = error.splitlines()[-1]
    assert last == "roost-manage: 2 further instances were not checked; --instance <uuid> heals one of them"
    assert "1 further instances were not" in run("heal_allocations", "--cell", "")[2]
    assert run("heal_allocations", "--instance", stopped.uuid("lost"))[0] == 0
    assert stopped.held("lost") == healed(stopped)


def test_4_a_dry_run_says_what_would_be_done_and_does_nothing(stopped, run):
    stopped.instance(1, "lost")
    before = stopped.dump()
    code, said, _ = run("heal_allocations", "--dry-run")
    assert code == 4
    assert f"instance {stopped.uuid('lost')} would hold 1 VCPU, 512 MEMORY_MB, 2 DISK_GB of provider" in said
    assert "1 instances would be healed" in said
    assert stopped.dump() == before


def test_4_only_one_cell_is_healed(stopped, run):
    stopped.instance(1, "lost", cell="a")
    assert run("heal_allocations", "--cell", "b")[0] == 4
    assert run("heal_allocations", "--cell", "a")[0] == 0


@pytest.mark.parametrize("specs", [{"resources:VGPU": "1"}, {"accel:device_profile": "card"}])
def test_8_a_device_that_only_the_host_knows(stopped, run, specs):
    stopped.instance(1, "lost", flavor=Flavor(name="gpu", vcpus=1, extra_specs=specs))
    assert run("heal_allocations")[0] == 8
    assert stopped.held("lost") == {}


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
def test_127_what_cannot_be_meant(stopped, run, more, problem):
    before = stopped.dump()
    code, _, error = run("heal_allocations", *more)
    assert code == 127
    assert error.startswith(f"roost-manage: {problem}") or problem in error
    assert stopped.dump() == before


# --- audit ---


@pytest.fixture
def leaked(stopped):
    """Give a database where an instance that is deleted holds something, one that lives too, and a migration."""
    stopped.instance(1, "one")
    stopped.instance(2, "two", status="DELETED")
    with stopped.machine() as machine:
        machine.world.hold("migration", **{HOST: {"VCPU": 1}})
        machine.world.hold("ended", **{HOST: {"CUSTOM_FPGA": 1}})
    stopped.migration("migration")
    return stopped


def test_0_an_audit_without_findings(stopped, run):
    stopped.instance(1, "one")
    stopped.instance(2, "two")
    assert run("audit", "--verbose")[:2] == (0, "no orphaned allocations\n")


def test_1_an_audit_that_cannot_give_back(leaked, run):
    with closing(sqlite3.connect(leaked.path)) as connection:
        connection.execute(
            "CREATE TRIGGER kept BEFORE DELETE ON consumer BEGIN SELECT RAISE(ABORT, 'consumers are kept'); END"
        )
    code, _, error = run("audit", "--delete")
    assert code == 1
    assert f"roost-manage: consumer {leaked.uuid('two')}: " in error
    assert "consumers are kept" in error
    assert leaked.held("two")


def test_3_an_audit_finds_what_deleted_instances_hold(leaked, run):
    before = leaked.dump()
    code, said, _ = run("audit")
    assert code == 3
    two = leaked.uuid("two")
    assert {line.split()[1] for line in said.splitlines()} == {two}
    assert f"consumer {two} holds 1 VGPU on provider {leaked.uuid(HOST)}" in said
    assert leaked.dump() == before
    assert run("audit", "--resource_provider", leaked.uuid(HOST))[0] == 3


def test_4_an_audit_gives_it_back(leaked, run):
    assert run("audit", "--delete")[0] == 4
    assert [bool(leaked.held(name)) for name in ("one", "two", "migration", "ended")] == [True, False, True, True]
    assert run("audit")[0] == 0


def test_4_of_an_instance_only_what_it_holds_of_another_host_is_given_back(stopped, run):
    stopped.instance(1, "one")
    stopped.instance(2, "two")
    assert run("heal_allocations")[0] == 0
    with stopped.machine() as machine:
        machine.world.provider("other", VCPU=8, MEMORY_MB=4096)
        found = machine.world.ask("GET", f"/allocations/{stopped.uuid('one')}")
        machine.world.hold("one", found["consumer_generation"], **{HOST: HELD, "other": {"VCPU": 1, "MEMORY_MB": 512}})
    assert run("audit")[0] == 0  # It is no host.
    stopped.register("other")
    code, said, _ = run("audit")
    assert (code, len(said.splitlines())) == (3, 2)
    consumer, other = stopped.uuid("one"), stopped.uuid("other")
    assert f"consumer {consumer} holds 1 VCPU on provider {other}, and is an instance on another host" in said
    assert run("audit", "--resource_provider", stopped.uuid(HOST))[0] == 0
    assert run("audit", "--delete", "--resource_provider", other)[0] == 4
    assert stopped.held("one") == {stopped.uuid(HOST): HELD}
    assert (run("audit")[0], run("heal_allocations")[0]) == (0, 4)


def test_127_an_audit_of_a_provider_that_is_not_there(leaked, run):
    for uuid in ("nonsense", leaked.uuid("nowhere")):
        code, _, error = run("audit", "--resource_provider", uuid)
        assert code == 127
        assert uuid in error


# --- sync_aggregates ---


def test_0_hosts_are_in_aggregates_with_their_providers(stopped, run):
    # Elsewhere, since here there are no hosts.
    with closing(open_store(stopped.folder / "fleet.db", settings=StoreSettings())) as store:
        fleet = Fleet(aggregates=[Aggregate(uuid=uuid_named("gold"), name="gold")])
        roost_on(store).install(joined(fleet, host("a", aggregates=["gold"]), host("b")))
    (stopped.folder / "fleet").mkdir()
    (stopped.folder / "fleet.db").rename(stopped.folder / "fleet" / "roost.db")
    found = run("sync_aggregates", "--verbose", folder=stopped.folder / "fleet")
    assert found[:2] == (0, f"the provider of node a is in aggregate {uuid_named('gold')}\n")
    assert run("sync_aggregates")[:2] == (0, "")


def test_127_a_folder_of_provider_configs_that_is_not_there(stopped, run):
    before = stopped.dump()
    code, _, error = run("migrate_compute_inventory", "--driver", "fake", "--provider-config", "gone")
    assert (code, error) == (127, "roost-manage: --provider-config: there is no folder gone\n")
    assert stopped.dump() == before


@pytest.mark.parametrize(
    ("error", "code"), [(PlacementGone("away"), 2), (Conflict("race"), 3), (NotFound("provider", "a"), 6)]
)
def test_2_3_6_a_placement_that_is_away_one_that_refuses_and_one_without_the_provider(run, monkeypatch, error, code):
    class Failing:
        def aggregate_add_host(self, uuid, node):
            raise error

    monkeypatch.setattr(sync_aggregates, "read_hosts", lambda _: {"uuid": ["a"]})
    monkeypatch.setattr(sync_aggregates, "open_report", lambda _: nullcontext(Failing()))
    found = run("sync_aggregates")
    assert (found[0], found[2]) == (code, f"roost-manage: {error}\n")


# --- migrate_compute_inventory ---


def words(stopped, layout, *more, fault=None):
    """Give the words that say which host."""
    return (*stopped.words(layout, fault=fault), *more)


@pytest.mark.shows("S131")
def test_0_inventories_move_and_then_there_is_nothing_to_move(stopped, run):
    assert run("migrate_compute_inventory", *words(stopped, "gpus"))[:2] == (0, f"{stopped.host}: moved\n")
    before = stopped.dump()
    assert run("migrate_compute_inventory", *words(stopped, "gpus"))[:2] == (0, "")
    assert stopped.dump() == before


def test_0_the_settings_of_the_agent_hold(stopped, run):
    config = stopped.folder / "roost.toml"
    config.write_text("[agent]\nreserved_host_cpus = 2\n")
    assert run("migrate_compute_inventory", *words(stopped, "gpus"), config=config)[0] == 0
    with stopped.machine() as machine:
        assert machine.world.of(HOST, "inventories")["VCPU"]["reserved"] == 2


def test_1_inventories_that_cannot_move(stopped, run):
    uuid = stopped.uuid("one")
    less = msgspec.structs.replace(spec_of("one", stopped.host), uuid=uuid)
    stopped.driver("flat").spawn(less, "another operation")
    before = stopped.dump()
    code, _, error = run("migrate_compute_inventory", *words(stopped, "gpus"))
    assert code == 1
    assert f"{uuid} holds 1 VGPU and uses none there" in error
    assert stopped.dump() == before


@pytest.mark.parametrize("more", [("--node", "nowhere"), ("--host", "another")])
def test_2_a_node_that_is_not_there(stopped, run, more):
    assert run("migrate_compute_inventory", *words(stopped, "gpus", *more))[0] == 2


@pytest.mark.parametrize("more", [("--driver", "metal"), ("--option", "colour=red"), ("--term", "x")])
def test_127_a_driver_that_cannot_be_meant(stopped, run, more):
    assert run("migrate_compute_inventory", *words(stopped, "gpus", *more))[0] == 127


@pytest.mark.parametrize(("kind", "named"), [("unready", ""), ("crash", "host  host: FakeCrash: ")])
def test_255_a_driver_that_is_not_ready_or_raises_what_it_likes(stopped, run, kind, named):
    code, _, error = run("migrate_compute_inventory", *words(stopped, "gpus", fault=("start", kind)))
    said = f"roost-manage: {named}start on {stopped.host} was to go wrong ({kind})"
    assert (code, error.splitlines()[-1]) == (255, said)


# --- all of them ---

ACTS = ("heal_allocations", "audit", "sync_aggregates", "migrate_compute_inventory")


@pytest.mark.parametrize("act", ACTS)
def test_255_a_server_that_runs_or_no_database(stopped, run, act):
    stopped.instance(1, "one")
    more = words(stopped, "gpus") if act == ACTS[-1] else ()
    with stopped.machine():
        code, _, error = run(act, *more)
        assert (code, "roost-manage: " in error) == (255, True)
    assert run(act, *more, folder=stopped.folder / "nowhere")[0] == 255


@pytest.mark.parametrize(
    ("act", "where", "name"),
    [
        (ACTS[0], heal_allocations, "heal"),
        (ACTS[1], delete_orphans, "find"),
        (ACTS[2], sync_aggregates, "sync_aggregates"),
    ],
)
def test_255_a_fault_that_nobody_raised_on_purpose(run, monkeypatch, act, where, name):
    monkeypatch.setattr(where, name, Mock(side_effect=RuntimeError("odd")))
    code, _, error = run(act)
    assert (code, error.splitlines()[-1]) == (255, "RuntimeError: odd")


def test_127_without_a_command(monkeypatch, capsys):
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
def test_127_an_option_or_a_command_that_there_is_not(run, words, problem):
    code, _, error = run(*words)
    assert code == 127
    assert error.startswith("usage: roost-manage")
    assert problem in error


def test_0_help_names_the_options(run):
    code, said, _ = run("heal_allocations", "--help")
    assert (code, "--max-count" in said) == (0, True)


def test_the_database_may_be_named_by_a_placement_conf(stopped, monkeypatch, capsys):
    conf = stopped.folder / "placement.conf"
    conf.write_text(f"[placement_database]\nconnection = sqlite:///{stopped.path}\n")
    stopped.instance(1, "lost")
    monkeypatch.setattr("sys.argv", ["roost-manage", "--config-file", str(conf), "placement", "heal_allocations"])
    with pytest.raises(SystemExit) as end:
        manage.main()
    assert (end.value.code, capsys.readouterr().out) == (0, "1 instances healed\n")
