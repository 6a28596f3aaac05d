"""The resource tracker of a host with the fake driver and any Placement, and hosts to reshape."""

import msgspec

from roost.compute.drivers.fake.guests import MemoryShelf
from roost.compute.drivers.fake.script import FakeNode, Gpu, Script
from roost.compute.inventory.device_providers import DeviceProviders
from roost.compute.inventory.monitors import Monitors
from roost.compute.inventory.provider_config import ProviderConfigs
from roost.compute.inventory.reshape import Reshaper
from roost.compute.inventory.resource_tracker import Tracker
from roost.model.devices.numa import NumaCell
from roost.model.provider import Inventory
from roost.model.work.agent_terms import HostTerms, PciDevice, ReshapeTerms
from roost.model.work.device_spec import read_device_specs
from tests.support.agents.driver_doubles import fake_driver, spec_of

HOST = "host"
SCRIPT = {
    "renames": {"CUSTOM_FPGA": "FPGA"},
    "node": (
        FakeNode(
            inventories={"CUSTOM_FPGA": Inventory(total=4, max_unit=4)},
            cell=(
                NumaCell(id=0, memory_mb=4096, cpus=(0, 1, 2, 3)),
                NumaCell(id=1, memory_mb=4096, cpus=(4, 5, 6, 7)),
            ),
            gpu=(Gpu(name="gpu0", vgpus=2), Gpu(name="gpu1", vgpus=2)),
            pci=tuple(
                PciDevice(address=str(cell), vendor_id="8086", product_id="1", dev_type="type-VF", numa_node=cell)
                for cell in (0, 1)
            ),
        ),
    ),
}
HELD = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 1, "VGPU": 1, "SRIOV_NET_VF": 1, "CUSTOM_FPGA": 1}
ROOT = ""
REST = {"DISK_GB": 2, "CUSTOM_FPGA": 2}
CELL = {"VCPU": 1, "MEMORY_MB": 1024, "SRIOV_NET_VF": 1}
SUMS = {"VCPU": 2, "MEMORY_MB": 2048, "SRIOV_NET_VF": 2}
USED = {  # by layout: the usage of two guests on each provider
    "gpus": {ROOT: REST | SUMS, "gpu0": {"VGPU": 1}, "gpu1": {"VGPU": 1}},
    "numa": {ROOT: REST | {"VGPU": 2}, "numa0": CELL, "numa1": CELL},
    "renamed": {ROOT: SUMS | {"DISK_GB": 2, "FPGA": 2, "VGPU": 2}},
}


class MemoryJournal:
    """The journal of an agent, in memory."""

    def __init__(self):
        self.nodes, self.of_instances, self.of_migrations = {}, {}, {}

    def node_uuids(self):
        """Return the uuids of nodes."""
        return dict(self.nodes)

    def keep_node(self, node, uuid):
        """Store the uuid of a node."""
        self.nodes[node] = uuid

    def forget_node(self, node):
        """Remove the uuid of a node."""
        del self.nodes[node]

    def instances(self, node):
        """Return the uses of instances."""
        return self.of_instances

    def migrations(self, node):
        """Return the uses of migrations."""
        return self.of_migrations

    def name_devices(self, node, uses):
        """Store the devices of instances and migrations."""
        for holder, use in uses.items():
            (self.of_instances if holder in self.of_instances else self.of_migrations)[holder] = use


class Machine:
    """A host whose agent can be restarted, with the state that outlives the agent."""

    def __init__(self, world, script=None):
        self.world, self.script = world, SCRIPT if script is None else script
        self.host = world.n(HOST)
        self.shelf, self.book = MemoryShelf(), MemoryJournal()
        # The world finds the provider of the host by its name.
        self.book.keep_node(self.host, world.u(HOST))
        self.terms = ReshapeTerms()
        self.host_terms = HostTerms()
        self.configs, self.warned = [], []
        self.instances = None
        self.device_specs = None  # the device specs of the settings; None if Placement does not count devices
        self.counts_devices = True
        self.driver = self.report = self.tracker = None

    def start(self, layout="flat", *, driver=None, monitors=()):
        """Restart the agent with a layout, without an update."""
        terms = self.host_terms
        self.driver = driver or fake_driver(
            Script(layout=layout, **self.script), self.host, shelf=self.shelf, terms=terms
        )
        self.report, devices = self.world.client(), None
        if self.device_specs is not None:
            specs = tuple(spec for text in self.device_specs for spec in read_device_specs(text))
            devices = DeviceProviders(self.report, is_on=self.counts_devices, specs=specs)
        reshaper = Reshaper(
            self.driver,
            self.report,
            configs=ProviderConfigs(self.configs, warn=self.warned.append),
            terms=self.terms,
            sleep=self.world.pauses.append,
            uniform=lambda _, high: high,
            devices=devices,
        )
        self.tracker = Tracker(
            self.host,
            driver=self.driver,
            report=self.report,
            reshaper=reshaper,
            journal=self.book,
            monitors=Monitors(monitors),
            instances=self.instances,
            periodic_reshape=self.terms.periodic_reshape,
            host_ip="10.0.0.1",
            devices=devices,
        )
        return self.tracker

    def update(self, *, is_startup=True, is_disabled=None):
        """Update the node."""
        return self.tracker.update(self.host, is_startup=is_startup, is_disabled=is_disabled)

    def populate(self, *guests, held=None):
        """Spawn guests that each hold some of every class on the root provider."""
        for guest in guests:
            self.world.hold(guest, **{HOST: held or HELD})
            spec = spec_of(guest, self.host, allocations={self.world.u(HOST): held or HELD})
            self.driver.spawn(msgspec.structs.replace(spec, uuid=self.world.u(guest)), "operation")

    def children(self):
        """Return the names of the child providers, without the prefixes of the test and the host."""
        names = self.world.children(HOST)
        return [name.removeprefix(f"{HOST}_") for name in names]

    def usages(self):
        """Return the usage by provider name, without the prefix of the host."""
        found = {}
        for each in self.records():
            name = each["name"].removeprefix(self.host).removeprefix("_")
            used = self.world.ask("GET", f"/resource_providers/{each['uuid']}/usages")["usages"]
            found[name] = {of: amount for of, amount in used.items() if amount}
        return found

    def records(self):
        """Return Placement's list of the providers of the tree."""
        uuid = self.world.u(HOST)
        found = self.world.ask("GET", f"/resource_providers?in_tree={uuid}")["resource_providers"]
        return sorted(found, key=lambda each: each["uuid"])

    def dump(self):
        """Return the tree in Placement: its providers with inventories, traits, aggregates and allocations."""
        found = {}
        for each in self.records():
            own = {key: each[key] for key in ("uuid", "name", "generation", "parent_provider_uuid")}
            for part in ("inventories", "traits", "aggregates", "allocations"):
                value = self.world.ask("GET", f"/resource_providers/{each['uuid']}/{part}")[part]
                own[part] = sorted(value) if isinstance(value, list) else value
            own["held"] = {uuid: self.world.ask("GET", f"/allocations/{uuid}") for uuid in own["allocations"]}
            found[each["uuid"]] = own
        return found

    def writes(self):
        """Return the recorded requests that are not GETs."""
        return [each for each in self.world.network.asked if each.method != "GET"]

    def check_settled(self):
        """Check that later updates, at startup or not, write nothing and change nothing."""
        before = self.dump()
        for is_startup in (False, True):
            self.world.network.asked.clear()
            self.start()
            self.update(is_startup=is_startup)
            assert self.writes() == []
        assert self.dump() == before

    def claim_before(self, method, part, *, times=1, **amounts):
        """Claim as another consumer right before each of the next such requests."""

        def claim(number):
            return lambda: self.world.hold(f"claimer {number}", **{HOST: amounts})

        for number in range(times):
            self.world.network.first(method, part, claim(number))
