"""Migration of inventories in the database of a stopped server."""

import json

import msgspec
import pytest

from roost.compute.drivers.fake.driver import Fake
from tests.support.agents.driver_doubles import spec_of
from tests.support.agents.trackers import HOST, USED
from tests.support.servers.unserved_database import HostDatabase


@pytest.fixture
def database(tmp_path):
    """Return the database of a stopped server."""
    return HostDatabase(tmp_path)


def arguments(database, layout="flat", *more, fault=None):
    """Return the arguments of the command."""
    return ("host", "migrate-inventory", "--data", database.folder, *database.words(layout, fault=fault), *more)


@pytest.mark.shows("S131", "S138", "S140")
@pytest.mark.parametrize("layout", [*USED])
def test_allocations_of_guests_move_and_a_second_run_changes_nothing(database, run, layout):
    tables = [line for line in database.dump() if line.startswith("CREATE")]
    assert run(*arguments(database, layout))[:2] == (0, f"{database.host}: moved\n")
    assert [line for line in database.dump() if line.startswith("CREATE")] == tables
    with database.machine() as machine:
        assert machine.usages() == USED[layout]
    before = database.dump()
    code, output, _ = run(*arguments(database, layout, "--json"))
    assert (code, json.loads(output)) == (0, [{"node": database.host, "is_reshaped": False}])
    assert database.dump() == before


@pytest.mark.shows("S131")
def test_nothing_is_written_when_nothing_needs_to_move(database, run):
    before = database.dump()
    assert run(*arguments(database, "flat", "--term", "reserved_host_cpus=2"))[:2] == (
        0,
        f"{database.host}: nothing to move\n",
    )
    assert database.dump() == before


SITE = """\
meta: {schema_version: '1.0'}
providers:
  - identification: {name: ' host'}
    inventories: {additional: [CUSTOM_SEATS: {total: 7}]}
"""


@pytest.mark.parametrize(("more", "reserved"), [((), 2), (("--term", "reserved_host_cpus=3"), 3)])
def test_command_options_override_agent_settings(database, run, more, reserved):
    config, folder = database.folder / "roost.toml", database.folder / "site"
    folder.mkdir()
    (folder / "site.yaml").write_text(SITE)
    config.write_text(f'[agent]\nreserved_host_cpus = 2\nprovider_config_location = "{folder}"\n')
    command = [*arguments(database, "gpus"), "--config", config, *more]
    if more:
        command += ["--provider-config", database.folder]
    assert run(*command)[:2] == (0, f"{database.host}: moved\n")
    with database.machine() as machine:
        inventories = machine.world.of(HOST, "inventories")
    assert (inventories["VCPU"]["reserved"], "CUSTOM_SEATS" in inventories) == (reserved, not more)


@pytest.mark.parametrize("layout", [*USED])
def test_device_providers_in_placement_are_unchanged(database, run, layout):
    with database.machine() as machine:
        machine.device_specs = ()
        machine.start(driver=database.driver("flat"))
        machine.update()
        before = {each["name"] for each in machine.records()}
    assert len(before) == 3
    assert run(*arguments(database, layout))[:2] == (0, f"{database.host}: moved\n")
    with database.machine() as machine:
        assert before <= {each["name"] for each in machine.records()}
        moved = {name: used for name, used in machine.usages().items() if used}
    assert moved == USED[layout]


def test_failed_reshape_changes_nothing(database, run):
    driver = database.driver("flat")
    with database.machine() as machine:
        uuid = machine.world.u("one")
    driver.destroy(uuid, "operation")
    driver.spawn(msgspec.structs.replace(spec_of("one", database.host), uuid=uuid), "another")
    before = database.dump()
    code, _, error = run(*arguments(database, "gpus"))
    assert code == 9
    assert f"{uuid} holds 1 VGPU and uses none on the new providers" in error
    assert database.dump() == before


def test_running_server_blocks_the_command(database, run):
    with database.machine():
        assert run(*arguments(database, "gpus"))[0] == 7


@pytest.mark.parametrize(("kind", "prefix"), [("unready", ""), ("crash", "FakeCrash: ")])
@pytest.mark.parametrize("act", ["start", "update_provider_tree"])
def test_driver_failure_changes_nothing(database, run, act, kind, prefix):
    before = database.dump()
    code, _, error = run(*arguments(database, "gpus", fault=(act, kind)))
    last = error.splitlines()[-1]
    assert (code, last.startswith("roost: ")) == (7, True)
    assert f"{prefix}{act} on {database.host} was made to fail ({kind})" in last
    assert database.dump() == before


@pytest.mark.parametrize("names", [None, ["a", "a"], ["a/b"]])
def test_driver_with_invalid_node_names_is_refused(database, run, monkeypatch, names):
    monkeypatch.setattr(Fake, "nodes", lambda _: names)
    before = database.dump()
    code, _, error = run(*arguments(database, "gpus"))
    assert (code, "nodes of the driver returned" in error) == (7, True)
    assert database.dump() == before


def test_conflicting_provider_config_is_reported_and_nothing_moves(database, run):
    folder = database.folder / "site"
    folder.mkdir()
    (folder / "site.yaml").write_text(SITE.replace("SEATS", "FPGA"))
    before = database.dump()
    code, _, error = run(*arguments(database, "gpus", "--provider-config", folder))
    assert (code, "site.yaml: provider ' host' has inventory of CUSTOM_FPGA already" in error) == (7, True)
    assert database.dump() == before


@pytest.mark.parametrize(
    ("more", "code", "problem"),
    [
        (("--node", "nowhere"), 4, "has no node nowhere"),
        (("--driver", "metal"), 3, "driver metal: does not exist; the drivers are"),
        (("--option", "colour=red"), 3, "has no option colour"),
        (("--option", "colour"), 3, "--option: must be KEY=VALUE, got 'colour'"),
        (("--term", "colour=red"), 3, "term colour: does not exist; the terms are"),
        (("--term", "reserved_host_cpus=-1"), 3, "term reserved_host_cpus: "),
        (("--host", "another"), 4, "no such provider: another"),
        (("--data", "/nowhere/at/all"), 4, "/nowhere/at/all/roost.db does not exist"),
    ],
)
def test_invalid_arguments_change_nothing(database, run, more, code, problem):
    before = database.dump()
    result = run(*arguments(database, "gpus", *more))
    assert result[0] == code, result
    assert problem in result[2]
    assert database.dump() == before


def test_ironic_driver_has_nothing_to_move(database, run):
    assert run(*arguments(database, "gpus", "--driver", "ironic"))[:2] == (0, "")
