"""PCI devices that Placement counts, from end to end: a server, a conductor, and agents with fake drivers."""

import json
import random
import time
from contextlib import closing, contextmanager

import pytest

from roost.app.agent_process import SharedHttp
from roost.client.agent_server import HttpServer, InstanceLookup
from roost.client.report_http import ReportHttp
from roost.compute.agent.agent_journal import Journal
from roost.compute.inventory.device_providers import DeviceProviders
from roost.compute.inventory.monitors import Monitors
from roost.compute.inventory.provider_config import ProviderConfigs
from roost.compute.inventory.reshape import Reshaper
from roost.compute.inventory.resource_tracker import Tracker
from roost.compute.report.report_client import ReportClient
from roost.machine import SystemClock
from roost.model.settings.roost_settings import FilterScheduler, Pci, Settings
from roost.model.work.agent_terms import ReshapeTerms
from roost.model.work.device_spec import read_device_specs
from tests.contract.agents_over_http import http_server, is_ready, running_agent, running_conductor
from tests.support.agents.report_clients import SERVICE
from tests.support.fleets.named_uuids import uuid_named
from tests.support.waiting import until

pytestmark = pytest.mark.long

ONE, TWO = uuid_named("one"), uuid_named("two")
GPU, NIC = "CUSTOM_PCI_10DE_1DB4", "CUSTOM_NIC"
NEAR, FAR, CARD = "0000:0a:00.0", "0000:0b:00.0", "0000:81:00.0"
SCRIPT = f"""
[[node]]
[[node.cell]]
id = 0
memory_mb = 4096
cpus = [0, 1, 2, 3]
[[node.cell]]
id = 1
memory_mb = 4096
cpus = [4, 5, 6, 7]
[[node.pci]]
address = "{NEAR}"
vendor_id = "10de"
product_id = "1db4"
numa_node = 0
[[node.pci]]
address = "{FAR}"
vendor_id = "10de"
product_id = "1db4"
numa_node = 1
""" + "".join(
    f"""
[[node.pci]]
address = "0000:81:10.{number}"
vendor_id = "8086"
product_id = "154c"
dev_type = "type-VF"
parent_address = "{CARD}"
"""
    for number in (1, 2)
)
SPECS = (
    f'{{"address": "{NEAR}", "traits": "slow one"}}',
    f'{{"address": "{FAR}", "traits": "fast one"}}',
    '{"vendor_id": "8086", "resource_class": "nic"}',
)
KIND = {"vendor_id": "10de", "product_id": "1db4"}
ALIASES = (
    {"name": "gpu", **KIND},
    {"name": "fast", **KIND, "traits": "fast one"},
    {"name": "near", **KIND, "numa_policy": "required"},
    {"name": "nic", "resource_class": "nic", "device_type": "type-VF"},
)


def product(*, is_placed=True):
    """Give settings by which Placement is asked for devices, or hosts alone are."""
    enabled = (*FilterScheduler().enabled_filters, "PciPassthroughFilter", "NUMATopologyFilter")
    aliases = ALIASES if is_placed else ALIASES[:1]
    return Settings(
        filter_scheduler=FilterScheduler(enabled_filters=enabled, pci_in_placement=is_placed),
        pci=Pci(alias=tuple(json.dumps(each) for each in aliases)),
    )


class Machine:
    """A host with devices, whose agent may be started again with other settings."""

    def __init__(self, url, folder, name):
        self.url, self.name, self.journal, self.lives = url, name, Journal(folder / f"{name}.db"), 0
        script = folder / "script.toml"
        script.write_text(SCRIPT)
        self.options = {"script": str(script), "state": str(folder / "state")}

    @contextmanager
    def running_agent(self, *, is_counting=True, update_s=None):
        """Let its agent live; give its driver."""
        self.lives += 1
        with (
            closing(SharedHttp(lambda: ReportHttp(f"{self.url}/placement", headers=SERVICE))) as http,
            closing(HttpServer(self.url, token="admin", draw=lambda: 0.5, pause=lambda _: True)) as server,
            running_agent(
                self.url,
                life=self.lives,
                host=self.name,
                options=self.options,
                journal=self.journal,
                track=lambda driver, journal: self._tracker(driver, journal, http, server, is_counting),
            ) as driver,
        ):
            yield driver

    def _tracker(self, driver, journal, http, server, is_counting):
        chance = {"sleep": time.sleep, "uniform": random.Random(0).uniform}
        report = ReportClient(http, clock=SystemClock(), **chance)
        specs = tuple(spec for text in SPECS for spec in read_device_specs(text))
        devices = DeviceProviders(report, is_on=is_counting, specs=specs)
        bringing = Reshaper(
            driver, report, configs=ProviderConfigs([], warn=print), terms=ReshapeTerms(), devices=devices, **chance
        )
        return Tracker(
            self.name,
            driver=driver,
            report=report,
            bringing=bringing,
            book=journal,
            monitors=Monitors(()),
            devices=devices,
            instances=InstanceLookup(server, self.name),
        )


@pytest.fixture
def fleet(tmp_path):
    """Give a server whose scheduler asks Placement for devices, and two hosts that have some."""
    with http_server(product()) as (own, placement, url):
        yield own, placement, [Machine(url, tmp_path, name) for name in ("host-a", "host-b")]


def flavor(*devices, name="small", **more):
    return {
        "name": name,
        "vcpus": 1,
        "memory_mb": 512,
        "extra_specs": {"pci_passthrough:alias": ",".join(devices), **more},
    }


def built(own, uuid, asked, *, host=""):
    """Ask for an instance, and give how it is when that is over."""
    body = {"flavor": asked, "name": "one", "instance_uuids": [uuid]} | ({"force_hosts": [host]} if host else {})
    answered = own.post("/instances", body)
    assert answered.status == 202, answered.json
    until(lambda: shown(own, uuid)[0] not in (None, "BUILD"))
    return shown(own, uuid)


def is_told(own, name):
    """Say whether an agent lives, and has told of its host."""
    return is_ready(own, name) and own.get(f"/hosts/{name}").status == 200


def shown(own, uuid):
    found = own.get(f"/instances/{uuid}")
    if found.status != 200:
        return None, ""
    return found.json["status"], found.json["host"] or found.json["fault"]


def done(own, act, body=None, *, of=ONE):
    """Ask for something, and give how the instance is when that is over."""
    asked = own.delete(f"/instances/{of}") if act == "delete" else own.post(f"/instances/{of}/{act}", body or {})
    assert asked.status == 202, asked.json
    until(lambda: own.get(f"/operations/{asked.json['operation']}").json["outcome"] != "open")
    return shown(own, of)


def providers(placement):
    """Give the uuids of all providers, by name."""
    found = placement.get("/resource_providers").json["resource_providers"]
    return {each["name"]: each["uuid"] for each in found}


def usages(placement):
    """Give what is used of devices, by name of the provider."""
    found = {}
    for name, uuid in providers(placement).items():
        used = placement.get(f"/resource_providers/{uuid}/usages").json["usages"]
        if any(used.get(each) for each in (GPU, NIC)):
            found[name] = sum(used.get(each, 0) for each in (GPU, NIC))
    return found


def devices(driver):
    """Give the devices of each guest, by name of the instance."""
    (node,) = driver.nodes()
    names = {ONE: "one", TWO: "two"}
    return {names[uuid]: sorted(had) for uuid, had in driver.resources(node).pci_in_use.items()}


def test_a_guest_gets_the_device_of_the_provider_that_it_holds(fleet):
    own, placement, (a, b) = fleet
    with a.living() as on_a, b.living() as on_b, running_conductor(own):
        until(lambda: is_told(own, "host-a") and is_told(own, "host-b"))
        # Traits and class of the settings select the device.
        assert built(own, ONE, flavor("fast:1"), host="host-a") == ("ACTIVE", "host-a")
        assert (devices(on_a), usages(placement)) == ({"one": [FAR]}, {f"host-a_{FAR.upper()}": 1})
        assert built(own, TWO, flavor("gpu:1", "nic:2"), host="host-a") == ("ACTIVE", "host-a")
        assert devices(on_a) == {"one": [FAR], "two": [NEAR, "0000:81:10.1", "0000:81:10.2"]}
        assert usages(placement) == {f"host-a_{FAR.upper()}": 1, f"host-a_{NEAR.upper()}": 1, f"host-a_{CARD}": 2}

        large = flavor("gpu:2", name="large")
        assert done(own, "resize", {"flavor": large}) == ("VERIFY_RESIZE", "host-b")
        assert devices(on_b) == {"one": [NEAR, FAR]}
        assert usages(placement)[f"host-a_{FAR.upper()}"] == 1
        assert done(own, "revert") == ("ACTIVE", "host-a")
        assert (devices(on_a)["one"], devices(on_b)) == ([FAR], {})
        assert done(own, "resize", {"flavor": large}) == ("VERIFY_RESIZE", "host-b")
        assert done(own, "confirm") == ("ACTIVE", "host-b")
        assert [*devices(on_a)] == ["two"]
        assert usages(placement) == {
            f"host-a_{NEAR.upper()}": 1,
            f"host-a_{CARD}": 2,
            f"host-b_{NEAR.upper()}": 1,
            f"host-b_{FAR.upper()}": 1,
        }
        assert done(own, "rebuild", of=TWO) == ("ACTIVE", "host-a")
        assert devices(on_a) == {"two": [NEAR, "0000:81:10.1", "0000:81:10.2"]}
        assert done(own, "delete") == ("DELETED", "")
        assert done(own, "migrate", of=TWO) == ("ACTIVE", "host-b")
        assert devices(on_b) == {"two": [NEAR, "0000:81:10.1", "0000:81:10.2"]}
        assert done(own, "delete", of=TWO) == ("DELETED", "")
        assert (devices(on_a), devices(on_b), usages(placement)) == ({}, {}, {})


def test_devices_are_near_to_the_cells_of_the_guest(fleet):
    own, _, (a, _) = fleet
    with a.living() as on_a, running_conductor(own):
        until(lambda: is_told(own, "host-a"))
        asked = flavor("near:1", name="near", **{"hw:numa_nodes": "1"})
        asked = asked | {"vcpus": 4, "memory_mb": 3072}
        assert built(own, ONE, asked)[0] == "ACTIVE"
        assert built(own, TWO, asked)[0] == "ACTIVE"
        found = {holding.instance: holding.use for each in (ONE, TWO) for holding in a.journal.holdings(each)}
        cells = {uuid: [cell.host_cell for cell in use.cells] for uuid, use in found.items()}
        near = {NEAR: 0, FAR: 1}
        assert sorted(cells.values()) == [[0], [1]]
        assert cells == {uuid: [near[address] for address in use.addresses] for uuid, use in found.items()}
        assert sorted(devices(on_a).values()) == [[NEAR], [FAR]]


@pytest.mark.parametrize(("end", "stays"), [("confirm", NEAR), ("revert", FAR)])
def test_a_resize_in_place_has_both_devices_until_it_is_settled_also_in_the_next_life(fleet, end, stays):
    own, placement, (a, _) = fleet
    both = {f"host-a_{NEAR.upper()}": 1, f"host-a_{FAR.upper()}": 1}
    with running_conductor(own):
        with a.living() as driver:
            until(lambda: is_told(own, "host-a"))
            assert built(own, ONE, flavor("fast:1")) == ("ACTIVE", "host-a")
            assert done(own, "resize", {"flavor": flavor("gpu:1", name="large")}) == ("VERIFY_RESIZE", "host-a")
            assert (devices(driver), usages(placement)) == ({"one": [NEAR, FAR]}, both)
        with a.living() as driver:
            until(lambda: own.get("/agents/host-a").json["state"] == "ready")
            assert done(own, end) == ("ACTIVE", "host-a")
            assert devices(driver) == {"one": [stays]}
            until(lambda: usages(placement) == {f"host-a_{stays.upper()}": 1})
            assert done(own, "delete") == ("DELETED", "")
            assert (devices(driver), usages(placement)) == ({}, {})


def test_a_guest_that_moves_while_it_runs_and_one_that_is_shelved_get_devices_that_they_hold(fleet):
    own, placement, (a, b) = fleet
    with a.living() as on_a, b.living() as on_b, running_conductor(own):
        until(lambda: is_told(own, "host-a") and is_told(own, "host-b"))
        assert built(own, ONE, flavor("fast:1"), host="host-a") == ("ACTIVE", "host-a")
        assert done(own, "live-migrate") == ("ACTIVE", "host-b")
        assert (devices(on_a), devices(on_b)) == ({}, {"one": [FAR]})
        assert usages(placement) == {f"host-b_{FAR.upper()}": 1}
        assert done(own, "shelve")[0] == "SHELVED_OFFLOADED"
        assert (devices(on_b), usages(placement)) == ({}, {})
        status, host = done(own, "unshelve")
        assert status == "ACTIVE"
        assert devices(on_a) | devices(on_b) == {"one": [FAR]}
        assert usages(placement) == {f"{host}_{FAR.upper()}": 1}


def test_two_guests_never_get_one_device(fleet):
    own, placement, (a, _) = fleet
    with a.living() as on_a, running_conductor(own):
        until(lambda: is_told(own, "host-a"))
        uuids = [uuid_named(f"many {number}") for number in range(4)]
        for uuid in uuids:
            own.post("/instances", {"flavor": flavor("gpu:1"), "name": "many", "instance_uuids": [uuid]})
        until(lambda: all(shown(own, uuid)[0] in ("ACTIVE", "ERROR", None) for uuid in uuids))
        until(lambda: sum(shown(own, uuid)[0] == "ACTIVE" for uuid in uuids) == 2)
        (node,) = on_a.nodes()
        assert sorted(had for had in on_a.resources(node).pci_in_use.values()) == [(NEAR,), (FAR,)]
        assert usages(placement) == {f"host-a_{NEAR.upper()}": 1, f"host-a_{FAR.upper()}": 1}


def test_what_guests_had_before_it_was_switched_on_is_held_and_given_back(tmp_path):
    with http_server(product(is_placed=False)) as (own, placement, url), running_conductor(own):
        a = Machine(url, tmp_path, "host-a")
        with a.living(is_counting=False) as driver:
            until(lambda: is_told(own, "host-a"))
            assert built(own, ONE, flavor("gpu:1")) == ("ACTIVE", "host-a")
            had = devices(driver)
            assert (len(had["one"]), usages(placement)) == (1, {})
        with a.living() as driver:
            until(lambda: usages(placement) == {f"host-a_{had['one'][0].upper()}": 1})
            assert devices(driver) == had
            assert built(own, TWO, flavor("gpu:1")) == ("ACTIVE", "host-a")
            assert sorted(each for some in devices(driver).values() for each in some) == [NEAR, FAR]
            assert done(own, "delete") == ("DELETED", "")
            assert usages(placement) == {}
            assert devices(driver).keys() == {"two"}
