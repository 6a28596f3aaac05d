"""Inventories moved in a database that nobody serves."""

import json

import msgspec
import pytest

from roost.compute.drivers.fake.driver import Fake
from tests.support.agents.driver_doubles import spec_of
from tests.support.agents.trackers import HOST, USED
from tests.support.servers.unserved_database import Stopped


@pytest.fixture
def stopped(tmp_path):
    """Give a database that nobody serves."""
    return Stopped(tmp_path)


def words(stopped, layout="flat", *more, fault=None):
    """Give the words of the command."""
    return ("host", "migrate-inventory", "--data", stopped.folder, *stopped.words(layout, fault=fault), *more)


@pytest.mark.shows("S131", "S138", "S140")
@pytest.mark.parametrize("layout", [*USED])
def test_what_guests_hold_moves_and_the_next_time_there_is_nothing_to_do(stopped, run, layout):
    tables = [line for line in stopped.dump() if line.startswith("CREATE")]
    assert run(*words(stopped, layout))[:2] == (0, f"{stopped.host}: moved\n")
    assert [line for line in stopped.dump() if line.startswith("CREATE")] == tables
    with stopped.machine() as machine:
        assert machine.usages() == USED[layout]
    before = stopped.dump()
    code, said, _ = run(*words(stopped, layout, "--json"))
    assert (code, json.loads(said)) == (0, [{"node": stopped.host, "is_reshaped": False}])
    assert stopped.dump() == before


@pytest.mark.shows("S131")
def test_where_nothing_needs_to_move_nothing_is_written_even_if_the_host_changed(stopped, run):
    before = stopped.dump()
    assert run(*words(stopped, "flat", "--term", "reserved_host_cpus=2"))[:2] == (
        0,
        f"{stopped.host}: nothing to move\n",
    )
    assert stopped.dump() == before


SITE = """\
meta: {schema_version: '1.0'}
providers:
  - identification: {name: ' host'}
    inventories: {additional: [CUSTOM_SEATS: {total: 7}]}
"""


@pytest.mark.parametrize(("more", "reserved"), [((), 2), (("--term", "reserved_host_cpus=3"), 3)])
def test_the_settings_of_the_agent_hold_and_options_go_before_them(stopped, run, more, reserved):
    config, folder = stopped.folder / "roost.toml", stopped.folder / "site"
    folder.mkdir()
    (folder / "site.yaml").write_text(SITE)
    config.write_text(f'[agent]\nreserved_host_cpus = 2\nprovider_config_location = "{folder}"\n')
    asked = [*words(stopped, "gpus"), "--config", config, *more]
    if more:
        asked += ["--provider-config", stopped.folder]
    assert run(*asked)[:2] == (0, f"{stopped.host}: moved\n")
    with stopped.machine() as machine:
        found = machine.world.of(HOST, "inventories")
    assert (found["VCPU"]["reserved"], "CUSTOM_SEATS" in found) == (reserved, not more)


@pytest.mark.parametrize("layout", [*USED])
def test_devices_that_placement_counts_stay_as_they_are(stopped, run, layout):
    with stopped.machine() as machine:
        machine.device_specs = ()
        machine.start(driver=stopped.driver("flat"))
        machine.update()
        before = {each["name"] for each in machine.records()}
    assert len(before) == 3
    assert run(*words(stopped, layout))[:2] == (0, f"{stopped.host}: moved\n")
    with stopped.machine() as machine:
        assert before <= {each["name"] for each in machine.records()}
        moved = {name: used for name, used in machine.usages().items() if used}
    assert moved == USED[layout]


def test_a_reshape_that_cannot_work_changes_nothing(stopped, run):
    driver = stopped.driver("flat")
    with stopped.machine() as machine:
        uuid = machine.world.u("one")
    driver.destroy(uuid, "operation")
    driver.spawn(msgspec.structs.replace(spec_of("one", stopped.host), uuid=uuid), "another")
    before = stopped.dump()
    code, _, error = run(*words(stopped, "gpus"))
    assert code == 9
    assert f"{uuid} holds 1 VGPU and uses none there" in error
    assert stopped.dump() == before


def test_a_server_that_runs_keeps_it_away(stopped, run):
    with stopped.machine():
        assert run(*words(stopped, "gpus"))[0] == 7


@pytest.mark.parametrize(("kind", "named"), [("unready", ""), ("crash", "FakeCrash: ")])
@pytest.mark.parametrize("act", ["start", "update_provider_tree"])
def test_a_driver_that_is_not_ready_or_raises_what_it_likes_changes_nothing(stopped, run, act, kind, named):
    before = stopped.dump()
    code, _, error = run(*words(stopped, "gpus", fault=(act, kind)))
    last = error.splitlines()[-1]
    assert (code, last.startswith("roost: ")) == (7, True)
    assert f"{named}{act} on {stopped.host} was to go wrong ({kind})" in last
    assert stopped.dump() == before


@pytest.mark.parametrize("told", [None, ["a", "a"], ["a/b"]])
def test_a_driver_that_tells_no_names_of_nodes_is_refused(stopped, run, monkeypatch, told):
    monkeypatch.setattr(Fake, "nodes", lambda _: told)
    before = stopped.dump()
    code, _, error = run(*words(stopped, "gpus"))
    assert (code, "nodes of the driver returned" in error) == (7, True)
    assert stopped.dump() == before


def test_what_operators_add_in_vain_is_told_and_nothing_moves(stopped, run):
    folder = stopped.folder / "site"
    folder.mkdir()
    (folder / "site.yaml").write_text(SITE.replace("SEATS", "FPGA"))
    before = stopped.dump()
    code, _, error = run(*words(stopped, "gpus", "--provider-config", folder))
    assert (code, "site.yaml: provider ' host' has inventory of CUSTOM_FPGA already" in error) == (7, True)
    assert stopped.dump() == before


@pytest.mark.parametrize(
    ("more", "code", "problem"),
    [
        (("--node", "nowhere"), 4, "has no node nowhere"),
        (("--driver", "metal"), 3, "driver metal: is none of"),
        (("--option", "colour=red"), 3, "has no option colour"),
        (("--option", "colour"), 3, "--option: must be KEY=VALUE, got 'colour'"),
        (("--term", "colour=red"), 3, "term colour: is none of"),
        (("--term", "reserved_host_cpus=-1"), 3, "term reserved_host_cpus: "),
        (("--host", "another"), 4, "no such provider: another"),
        (("--data", "/nowhere/at/all"), 7, "there is no database /nowhere/at/all"),
    ],
)
def test_what_is_asked_wrongly_changes_nothing(stopped, run, more, code, problem):
    before = stopped.dump()
    found = run(*words(stopped, "gpus", *more))
    assert found[0] == code, found
    assert problem in found[2]
    assert stopped.dump() == before


def test_bare_metal_has_a_service_of_its_own(stopped, run):
    assert run(*words(stopped, "gpus", "--driver", "ironic"))[:2] == (0, "")
