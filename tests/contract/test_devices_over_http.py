"""PCI devices in Placement, end to end: a server, a conductor, and agents with fake drivers."""

import json
import random
import time
from contextlib import closing, contextmanager

import pytest

from roost.app.agents.agent_process import SharedHttp
from roost.client.agent_server import HttpServer, InstanceLookup
from roost.client.report_http import ReportHttp
from roost.client.server_list import ServerList
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
from tests.support.wait import wait_until

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
    """Return settings with PCI devices tracked in Placement, or only on hosts."""
    enabled = (*FilterScheduler().enabled_filters, "PciPassthroughFilter", "NUMATopologyFilter")
    aliases = ALIASES if is_placed else ALIASES[:1]
    return Settings(
        filter_scheduler=FilterScheduler(enabled_filters=enabled, pci_in_placement=is_placed),
        pci=Pci(alias=tuple(json.dumps(each) for each in aliases)),
    )


class Machine:
    """A host with devices; its agent can be restarted with other settings."""

    def __init__(self, url, folder, name):
        self.url, self.name, self.journal, self.lives = url, name, Journal(folder / f"{name}.db"), 0
        script = folder / "script.toml"
        script.write_text(SCRIPT)
        self.options = {"script": str(script), "state": str(folder / "state")}

    @contextmanager
    def run_agent(self, *, is_counting=True, update_s=None):
        """Run the agent; yield its driver."""
        self.lives += 1
        with (
            closing(
                SharedHttp(
                    ServerList([self.url], setting="--server"),
                    lambda url: ReportHttp(f"{url}/placement", headers=SERVICE),
                )
            ) as http,
            closing(
                HttpServer(
                    ServerList([self.url], setting="--server"), token="admin", draw=lambda: 0.5, pause=lambda _: True
                )
            ) as server,
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
        reshaper = Reshaper(
            driver, report, configs=ProviderConfigs([], warn=print), terms=ReshapeTerms(), devices=devices, **chance
        )
        return Tracker(
            self.name,
            driver=driver,
            report=report,
            reshaper=reshaper,
            journal=journal,
            monitors=Monitors(()),
            devices=devices,
            instances=InstanceLookup(server, self.name),
        )


@pytest.fixture
def fleet(tmp_path):
    """Yield a server with devices tracked in Placement, and two hosts with devices."""
    with http_server(product()) as (own, placement, url):
        yield own, placement, [Machine(url, tmp_path, name) for name in ("host-a", "host-b")]


def flavor(*devices, name="small", **more):
    return {
        "name": name,
        "vcpus": 1,
        "memory_mb": 512,
        "extra_specs": {"pci_passthrough:alias": ",".join(devices), **more},
    }


def build(own, uuid, flavor_body, *, host=""):
    """Build an instance; return its status and host when the operation ends."""
    body = {"flavor": flavor_body, "name": "one", "instance_uuids": [uuid]} | ({"force_hosts": [host]} if host else {})
    response = own.post("/instances", body)
    assert response.status == 202, response.json
    wait_until(lambda: status_and_host(own, uuid)[0] not in (None, "BUILD"))
    return status_and_host(own, uuid)


def is_reported(own, name):
    """Return whether an agent is ready and has reported its host."""
    return is_ready(own, name) and own.get(f"/hosts/{name}").status == 200


def status_and_host(own, uuid):
    found = own.get(f"/instances/{uuid}")
    if found.status != 200:
        return None, ""
    return found.json["status"], found.json["host"] or found.json["fault"]


def run_act(own, act, body=None, *, of=ONE):
    """Run an act on an instance; return its status and host when the operation ends."""
    response = own.delete(f"/instances/{of}") if act == "delete" else own.post(f"/instances/{of}/{act}", body or {})
    assert response.status == 202, response.json
    wait_until(lambda: own.get(f"/operations/{response.json['operation']}").json["outcome"] != "open")
    return status_and_host(own, of)


def providers(placement):
    """Return the uuids of all providers, by name."""
    found = placement.get("/resource_providers").json["resource_providers"]
    return {each["name"]: each["uuid"] for each in found}


def usages(placement):
    """Return the usage of devices, by provider name."""
    found = {}
    for name, uuid in providers(placement).items():
        used = placement.get(f"/resource_providers/{uuid}/usages").json["usages"]
        if any(used.get(each) for each in (GPU, NIC)):
            found[name] = sum(used.get(each, 0) for each in (GPU, NIC))
    return found


def devices(driver):
    """Return the devices of each guest, by instance name."""
    (node,) = driver.nodes()
    names = {ONE: "one", TWO: "two"}
    return {names[uuid]: sorted(each) for uuid, each in driver.resources(node).pci_in_use.items()}


def test_guest_gets_the_devices_of_its_allocated_providers(fleet):
    own, placement, (a, b) = fleet
    with a.run_agent() as on_a, b.run_agent() as on_b, running_conductor(own):
        wait_until(lambda: is_reported(own, "host-a") and is_reported(own, "host-b"))
        # Traits and resource class from the settings select the device.
        assert build(own, ONE, flavor("fast:1"), host="host-a") == ("ACTIVE", "host-a")
        assert (devices(on_a), usages(placement)) == ({"one": [FAR]}, {f"host-a_{FAR.upper()}": 1})
        assert build(own, TWO, flavor("gpu:1", "nic:2"), host="host-a") == ("ACTIVE", "host-a")
        assert devices(on_a) == {"one": [FAR], "two": [NEAR, "0000:81:10.1", "0000:81:10.2"]}
        assert usages(placement) == {f"host-a_{FAR.upper()}": 1, f"host-a_{NEAR.upper()}": 1, f"host-a_{CARD}": 2}

        large = flavor("gpu:2", name="large")
        assert run_act(own, "resize", {"flavor": large}) == ("VERIFY_RESIZE", "host-b")
        assert devices(on_b) == {"one": [NEAR, FAR]}
        assert usages(placement)[f"host-a_{FAR.upper()}"] == 1
        assert run_act(own, "revert") == ("ACTIVE", "host-a")
        assert (devices(on_a)["one"], devices(on_b)) == ([FAR], {})
        assert run_act(own, "resize", {"flavor": large}) == ("VERIFY_RESIZE", "host-b")
        assert run_act(own, "confirm") == ("ACTIVE", "host-b")
        assert [*devices(on_a)] == ["two"]
        assert usages(placement) == {
            f"host-a_{NEAR.upper()}": 1,
            f"host-a_{CARD}": 2,
            f"host-b_{NEAR.upper()}": 1,
            f"host-b_{FAR.upper()}": 1,
        }
        assert run_act(own, "rebuild", of=TWO) == ("ACTIVE", "host-a")
        assert devices(on_a) == {"two": [NEAR, "0000:81:10.1", "0000:81:10.2"]}
        assert run_act(own, "delete") == ("DELETED", "")
        assert run_act(own, "migrate", of=TWO) == ("ACTIVE", "host-b")
        assert devices(on_b) == {"two": [NEAR, "0000:81:10.1", "0000:81:10.2"]}
        assert run_act(own, "delete", of=TWO) == ("DELETED", "")
        assert (devices(on_a), devices(on_b), usages(placement)) == ({}, {}, {})


def test_devices_are_in_the_numa_cells_of_the_guest(fleet):
    own, _, (a, _) = fleet
    with a.run_agent() as on_a, running_conductor(own):
        wait_until(lambda: is_reported(own, "host-a"))
        near_flavor = flavor("near:1", name="near", **{"hw:numa_nodes": "1"})
        near_flavor = near_flavor | {"vcpus": 4, "memory_mb": 3072}
        assert build(own, ONE, near_flavor)[0] == "ACTIVE"
        assert build(own, TWO, near_flavor)[0] == "ACTIVE"
        found = {holding.instance: holding.use for each in (ONE, TWO) for holding in a.journal.holdings(each)}
        cells = {uuid: [cell.host_cell for cell in use.cells] for uuid, use in found.items()}
        near = {NEAR: 0, FAR: 1}
        assert sorted(cells.values()) == [[0], [1]]
        assert cells == {uuid: [near[address] for address in use.addresses] for uuid, use in found.items()}
        assert sorted(devices(on_a).values()) == [[NEAR], [FAR]]


@pytest.mark.parametrize(("end", "stays"), [("confirm", NEAR), ("revert", FAR)])
def test_resize_in_place_holds_both_devices_until_confirm_or_revert(fleet, end, stays):
    own, placement, (a, _) = fleet
    both = {f"host-a_{NEAR.upper()}": 1, f"host-a_{FAR.upper()}": 1}
    with running_conductor(own):
        with a.run_agent() as driver:
            wait_until(lambda: is_reported(own, "host-a"))
            assert build(own, ONE, flavor("fast:1")) == ("ACTIVE", "host-a")
            assert run_act(own, "resize", {"flavor": flavor("gpu:1", name="large")}) == ("VERIFY_RESIZE", "host-a")
            assert (devices(driver), usages(placement)) == ({"one": [NEAR, FAR]}, both)
        with a.run_agent() as driver:
            wait_until(lambda: own.get("/agents/host-a").json["state"] == "ready")
            assert run_act(own, end) == ("ACTIVE", "host-a")
            assert devices(driver) == {"one": [stays]}
            wait_until(lambda: usages(placement) == {f"host-a_{stays.upper()}": 1})
            assert run_act(own, "delete") == ("DELETED", "")
            assert (devices(driver), usages(placement)) == ({}, {})


def test_live_migrated_and_unshelved_guests_get_allocated_devices(fleet):
    own, placement, (a, b) = fleet
    with a.run_agent() as on_a, b.run_agent() as on_b, running_conductor(own):
        wait_until(lambda: is_reported(own, "host-a") and is_reported(own, "host-b"))
        assert build(own, ONE, flavor("fast:1"), host="host-a") == ("ACTIVE", "host-a")
        assert run_act(own, "live-migrate") == ("ACTIVE", "host-b")
        assert (devices(on_a), devices(on_b)) == ({}, {"one": [FAR]})
        assert usages(placement) == {f"host-b_{FAR.upper()}": 1}
        assert run_act(own, "shelve")[0] == "SHELVED_OFFLOADED"
        assert (devices(on_b), usages(placement)) == ({}, {})
        status, host = run_act(own, "unshelve")
        assert status == "ACTIVE"
        assert devices(on_a) | devices(on_b) == {"one": [FAR]}
        assert usages(placement) == {f"{host}_{FAR.upper()}": 1}


def test_two_guests_never_get_one_device(fleet):
    own, placement, (a, _) = fleet
    with a.run_agent() as on_a, running_conductor(own):
        wait_until(lambda: is_reported(own, "host-a"))
        uuids = [uuid_named(f"many {number}") for number in range(4)]
        for uuid in uuids:
            own.post("/instances", {"flavor": flavor("gpu:1"), "name": "many", "instance_uuids": [uuid]})
        wait_until(lambda: all(status_and_host(own, uuid)[0] in ("ACTIVE", "ERROR", None) for uuid in uuids))
        wait_until(lambda: sum(status_and_host(own, uuid)[0] == "ACTIVE" for uuid in uuids) == 2)
        (node,) = on_a.nodes()
        assert sorted(each for each in on_a.resources(node).pci_in_use.values()) == [(NEAR,), (FAR,)]
        assert usages(placement) == {f"host-a_{NEAR.upper()}": 1, f"host-a_{FAR.upper()}": 1}


def test_devices_of_guests_from_before_tracking_are_allocated_and_released(tmp_path):
    with http_server(product(is_placed=False)) as (own, placement, url), running_conductor(own):
        a = Machine(url, tmp_path, "host-a")
        with a.run_agent(is_counting=False) as driver:
            wait_until(lambda: is_reported(own, "host-a"))
            assert build(own, ONE, flavor("gpu:1")) == ("ACTIVE", "host-a")
            before = devices(driver)
            assert (len(before["one"]), usages(placement)) == (1, {})
        with a.run_agent() as driver:
            wait_until(lambda: usages(placement) == {f"host-a_{before['one'][0].upper()}": 1})
            assert devices(driver) == before
            assert build(own, TWO, flavor("gpu:1")) == ("ACTIVE", "host-a")
            assert sorted(each for some in devices(driver).values() for each in some) == [NEAR, FAR]
            assert run_act(own, "delete") == ("DELETED", "")
            assert usages(placement) == {}
            assert devices(driver).keys() == {"two"}
