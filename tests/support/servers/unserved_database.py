"""A database with a host but without a server, so that tests see the effect of commands in its tables."""

import sqlite3
from contextlib import closing

import msgspec

from roost import PlacementDirect
from roost.compute.driver import load
from roost.direct.direct_report import DirectHttp
from roost.fleet.stored_documents import document_of
from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.host import HostSpec
from roost.model.names import uuid_bytes
from roost.model.request import Request
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.model.work.work_rows import Put
from roost.store.backends import open_store
from tests.contract.stores import commit, item
from tests.support.agents.report_clients import PROJECT, USER, World
from tests.support.agents.trackers import HOST, Machine
from tests.support.conductors.work_rows import migration, status
from tests.support.fleets.worlds import roost_on

SCRIPT = """\
layout = "{layout}"
renames = {{CUSTOM_FPGA = "FPGA"}}
[[node]]
inventories = {{CUSTOM_FPGA = {{total = 4, max_unit = 4}}}}
cell = [{{id = 0, memory_mb = 4096, cpus = [0, 1, 2, 3]}}, {{id = 1, memory_mb = 4096, cpus = [4, 5, 6, 7]}}]
gpu = [{{name = "gpu0", vgpus = 2}}, {{name = "gpu1", vgpus = 2}}]
pci = [
    {{address = "0", vendor_id = "8086", product_id = "1", dev_type = "type-VF", numa_node = 0}},
    {{address = "1", vendor_id = "8086", product_id = "1", dev_type = "type-VF", numa_node = 1}},
]
"""


class HostDatabase:
    """A database in a folder, with a host in the flat layout and two guests."""

    def __init__(self, folder):
        self.folder, self.path = folder, folder / "roost.db"
        self._documents = set()
        with self.machine() as machine:
            self.host = machine.host
            machine.start(driver=self.driver("flat"))
            machine.update()
            machine.populate("one", "two")
        self.register(HOST)

    def options(self, layout, *, fault=None):
        """Return the options of the driver with a layout; ``fault`` is an action and the kind of its failure."""
        script = self.folder / f"{layout}.toml"
        faults = "" if fault is None else '[[fault]]\naction = "{}"\nkind = "{}"\n'.format(*fault)
        script.write_text(SCRIPT.format(layout=layout) + faults)
        return {"script": str(script), "state": str(self.folder / "state")}

    def words(self, layout, *, fault=None):
        """Return the command line options of the host and its driver."""
        options = self.options(layout, fault=fault).items()
        pairs = [word for option in options for word in ("--option", "=".join(option))]
        return ("--driver", "fake", "--host", self.host, *pairs)

    def driver(self, layout):
        """Return the driver of the host."""
        driver = load("fake", self.options(layout))
        driver.start(getattr(self, "host", " host"))
        return driver

    def machine(self):
        """Return a context manager that opens the host on the Placement of the database."""
        return _OpenMachine(self.path)

    def uuid(self, name):
        """Return the uuid for a name in the Placement of the database."""
        return World(None).u(name)

    def instance(self, number, name, *, flavor=None, **changes):
        """Write a named instance, which by default runs on the host."""
        flavor = flavor or Flavor(name="small", vcpus=1, memory_mb=512, root_gb=2)
        bodies = {"flavor": msgspec.json.encode(flavor), "request": Request(flavor=flavor).body()}
        documents = {kind: document_of(kind, body, body) for kind, body in bodies.items()}
        known = {
            "uuid": uuid_bytes(self.uuid(name)),
            "status": "ACTIVE",
            "task": "",
            "project_id": PROJECT,
            "user_id": USER,
            "host": self.host,
            "node": self.host,
            "flavor_id": documents["flavor"].id,
            "request_id": documents["request"].id,
        }
        new = [each for each in documents.values() if each.id not in self._documents]
        self._documents.update(each.id for each in new)
        self._commit(*new, work=[Put(status(number, **(known | changes)))])

    def register(self, name):
        """Register a host for a named provider of the Placement of the database."""
        known = World(None).n(name)
        with closing(open_store(self.path, settings=StoreSettings())) as store:
            roost_on(store).install(Fleet(hosts=[HostSpec(provider_uuid=self.uuid(name), host=known, node=known)]))

    def migration(self, name, **changes):
        """Write a named migration."""
        self._commit(work=[Put(migration(uuid=uuid_bytes(self.uuid(name)), **changes))])

    def _commit(self, *writes, work):
        with closing(open_store(self.path, settings=StoreSettings())) as store:
            assert commit(store, item(*writes, work=work)) == [""]

    def held(self, name):
        """Return the allocations of a consumer by provider."""
        with self.machine() as machine:
            return machine.world.held(name)

    def dump(self):
        """Return all rows of all tables except the sequences."""
        with closing(sqlite3.connect(self.path)) as connection:
            return [line for line in connection.iterdump() if 'INSERT INTO "sequence"' not in line]


class _OpenMachine:
    def __init__(self, path):
        self._direct = PlacementDirect(path)

    def __enter__(self):
        return Machine(World(DirectHttp(self._direct.__enter__())))

    def __exit__(self, *error):
        self._direct.__exit__(*error)
