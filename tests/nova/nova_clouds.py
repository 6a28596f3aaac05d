"""A small OpenStack of rows: Nova's databases, a broker, providers, and Roost as its nova-scheduler."""

import json
import uuid
from contextlib import contextmanager
from pathlib import Path

from roost.machine import SystemClock
from tests.nova.rpc_callers import NOVA, Caller
from tests.support.nova_messages import flavor, nova_object, request_spec
from tests.support.servers.nova_database import CELL0, NovaDatabase
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

# So long that no service dies by itself; a test changes the row of a service.
SERVICE_DOWN_S = 3600
FILTERS = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
    "NUMATopologyFilter",
    "PciPassthroughFilter",
)
POLL_S = 0.1
_OWNER = {"project_id": "a-project", "user_id": "a-user", "consumer_type": "INSTANCE"}


def new_uuid():
    """Return a random uuid."""
    return str(uuid.uuid4())


class NovaCloud:
    """Rows, records and messages of a small OpenStack.

    Args:
        folder: for nova.conf, the settings and Roost's database.
        broker: a broker, or a part of one.
        database: the API database of Nova.
        options: lines of nova.conf by section.
    """

    def __init__(self, folder: Path, broker, database: NovaDatabase, *, api_url=None, options=None) -> None:
        self.folder, self.broker, self.database = folder, broker, database
        self.nova_conf = folder / "nova.conf"
        self._api_url = api_url or database.api_url
        self._write_nova_conf(options or {})
        self.server = None
        self.caller = Caller(broker, NOVA, "scheduler")
        self.callers = (self.caller,)  # that send casts

    def _write_nova_conf(self, options):
        sections = {
            "DEFAULT": {"transport_url": self.broker.url, "host": "controller", "service_down_time": SERVICE_DOWN_S},
            "api_database": {"connection": self._api_url},
            "filter_scheduler": {"enabled_filters": ",".join(FILTERS)},
        }
        for section, more in options.items():
            sections[section] = sections.get(section, {}) | more
        lines = []
        for section, values in sections.items():
            lines += [f"[{section}]", *(f"{name} = {value}" for name, value in values.items())]
        self.nova_conf.write_text("\n".join(lines) + "\n")

    @contextmanager
    def served(self, *, settings="", poll_s=POLL_S, database=None):
        """Run ``roost nova-scheduler`` during the block.

        Args:
            settings: lines of section ``nova``.
            poll_s: seconds between readings of changes.
            database: URL of Roost's database; None: a file in the folder.
        """
        lines = f"[nova]\npoll_s = {poll_s}\n{settings}"
        words = ["--nova-conf", self.nova_conf] + ([] if database is None else ["--database", database])
        with serve(*words, settings=lines, folder=self.folder, noun="nova-scheduler") as server:
            self.server = server
            # The queue is declared after the first reading of the databases.
            wait_until(lambda: "rpc_broker_connected" in server.said)
            yield server

    def placement(self, method, path, body=None):
        """Send a request to the Placement API, and return its body."""
        status, _, answer = self.server.ask(method, f"/placement{path}", body)
        assert status < 300, (method, path, status, answer)
        return answer

    def add_host(self, cell, name, *, traits=(), reserved_mib=0, waits=True, totals=None, ratios=None, **rows):
        """Add a compute node with its provider, as nova-compute does; return its uuid.

        Args:
            totals: amounts by resource class.
            waits: whether to wait until Roost has the host.
            rows: as in ``NovaDatabase.add_host``.
        """
        number = self.database.add_host(cell, name, **rows)
        self.add_provider(number, name, traits=traits, reserved_mib=reserved_mib, totals=totals, ratios=ratios)
        if waits:
            self.wait_for_hosts(name)
        return number

    def add_provider(self, number, name, *, traits=(), reserved_mib=0, totals=None, ratios=None):
        """Add a provider with inventories and traits."""
        totals = {"VCPU": 8, "MEMORY_MB": 16384, "DISK_GB": 100} if totals is None else totals
        inventories = {
            each: {
                "total": total,
                "reserved": reserved_mib if each == "MEMORY_MB" else 0,
                "allocation_ratio": (ratios or {}).get(each, 1.0),
            }
            for each, total in totals.items()
        }
        self.placement("POST", "/resource_providers", {"name": name, "uuid": number})
        path = f"/resource_providers/{number}"
        self.placement("PUT", f"{path}/inventories", {"resource_provider_generation": 0, "inventories": inventories})
        if traits:
            for trait in traits:
                if trait.startswith("CUSTOM_"):
                    self.placement("PUT", f"/traits/{trait}")
            self.placement("PUT", f"{path}/traits", {"resource_provider_generation": 1, "traits": sorted(traits)})

    def hosts(self):
        """Return the hosts in Roost, by name."""
        status, _, answer = self.server.ask("GET", "/v1/hosts?limit=1000")
        assert status == 200, answer
        return {host["host"]: host for host in answer["hosts"]}

    def wait_for_hosts(self, *names):
        """Wait until Roost has hosts."""
        wait_until(lambda: set(names) <= self.hosts().keys())

    def send(self, *uuids, alternates=True, caller=None, **fields):
        """Send a call of a conductor; return its identifier.

        Args:
            uuids: the instances; empty: none is created, as in the check of a rebuild.
            caller: of another scheduler of this cloud.
            fields: of the RequestSpec.
        """
        arguments = {
            "instance_uuids": list(uuids) or None,
            "spec_obj": request_spec(**fields),
            "return_objects": True,
            "return_alternates": alternates,
        }
        return (caller or self.caller).send("select_destinations", arguments, timeout=60)

    def reply(self, identifier):
        """Wait for the last reply of a call."""
        return self.caller.wait(identifier)[-1]

    def reply_of(self, caller, *uuids, **fields):
        """Call a scheduler of this cloud; return its last reply."""
        return caller.wait(self.send(*uuids, caller=caller, **fields))[-1]

    def select(self, *uuids, **fields):
        """Call as a conductor does; return the fields of the selections of each instance."""
        reply = self.reply(self.send(*uuids, **fields))
        assert reply["failure"] is None, reply["failure"]
        return [[each["nova_object.data"] for each in instance] for instance in reply["result"]]

    def host_of(self, number, **fields):
        """Call for one instance; return the name of the chosen host."""
        ((first, *_),) = self.select(number, **fields)
        return first["service_host"]

    def refuse(self, *uuids, **fields):
        """Call as a conductor does; return the reason of the refusal."""
        reply = self.reply(self.send(*uuids, **fields))
        assert reply["failure"] is not None, reply["result"]
        failure = json.loads(reply["failure"])
        assert (failure["class"], failure["module"]) == ("NoValidHost", "nova.exception"), failure
        return failure["kwargs"]["reason"]

    def cast(self, method, version, arguments, *, is_fanout=True):
        """Send a cast, as computes and the API of Nova do."""
        for caller in self.callers:
            caller.send(method, arguments, version=version, is_cast=True, is_fanout=is_fanout)

    def cast_aggregates(self, aggregates):
        """Send the cast of Nova's API after changes of aggregates: uuid, name, hosts and metadata of each."""
        numbers = self.database.aggregate_numbers()
        objects = [
            nova_object("Aggregate", "1.3", id=numbers[each], uuid=each, name=name, hosts=hosts, metadata=metadata)
            for each, name, hosts, metadata in aggregates
        ]
        self.cast("update_aggregates", "4.1", {"aggregates": objects})

    def cell_row(self, cell):
        """Return the mapping of a cell."""
        return self.database.mapping_of(cell)

    def allocations(self, number):
        """Return the amounts of a consumer, by provider."""
        found = self.placement("GET", f"/allocations/{number}")["allocations"]
        return {provider: each["resources"] for provider, each in found.items()}

    def claim(self, number, amounts):
        """Claim amounts by provider for a new consumer, as Nova does without its scheduler."""
        allocations = {provider: {"resources": each} for provider, each in amounts.items()}
        body = {"allocations": allocations, "consumer_generation": None} | _OWNER
        self.placement("PUT", f"/allocations/{number}", body)

    def move_allocations(self, number, migration):
        """Move all allocations to another consumer."""
        found = self.placement("GET", f"/allocations/{number}")
        moved = {uuid: {"resources": each["resources"]} for uuid, each in found["allocations"].items()}
        body = {
            migration: {"allocations": moved, "consumer_generation": None} | _OWNER,
            number: {"allocations": {}, "consumer_generation": found["consumer_generation"]} | _OWNER,
        }
        self.placement("POST", "/allocations", body)

    def set_aggregates(self, provider, *aggregates):
        """Set the aggregates of a provider."""
        self._write_aggregates(provider, lambda _: list(aggregates))

    def add_to_aggregate(self, provider, aggregate):
        """Add a provider to an aggregate."""
        self._write_aggregates(provider, lambda before: [*before, aggregate])

    def _write_aggregates(self, provider, change):
        path = f"/resource_providers/{provider}/aggregates"
        for _ in range(5):  # Roost writes to the provider, too, after a change of its compute node.
            found = self.placement("GET", path)
            generation = found["resource_provider_generation"]
            body = {"aggregates": change(found["aggregates"]), "resource_provider_generation": generation}
            status, _, answer = self.server.ask("PUT", f"/placement{path}", body)
            if status != 409:
                break
        assert status == 200, answer

    def metadata_of(self, aggregate):
        """Return the metadata of an aggregate in Roost; empty: it has none."""
        status, _, answer = self.server.ask("GET", f"/v1/aggregates/{aggregate}")
        return answer.get("metadata") if status == 200 else {}

    def release(self, *uuids):
        """Delete the allocations of consumers."""
        for number in uuids:
            if self.allocations(number):
                self.placement("DELETE", f"/allocations/{number}")

    def close(self):
        """Close all connections."""
        self.caller.close()
        self.database.close()


def new_database(url, *, schema=None):
    """Return a new API database of Nova whose times are real."""
    return NovaDatabase(url, schema=schema, clock=SystemClock())


def open_sqlite_nova(folder: Path, *, schema: Path | None):
    """Return the databases of a Nova with one cell, and the options of nova.conf that its own programs need.

    Args:
        folder: for the SQLite files.
        schema: result of ``template``.
    """
    api, cell, cell0 = (f"sqlite:///{folder / name}" for name in ("api", "cell", "cell0"))
    database = new_database(api, schema=schema)
    database.add_cell(cell)
    database.create_cell_database(cell0)
    database.set_cell(CELL0, database_connection=cell0)
    return database, {"database": {"connection": cell}}


class SceneOfTest:
    """Hosts of one test in a cloud of many tests: a trait keeps its requests on its hosts."""

    def __init__(self, cloud: NovaCloud, cell: str, *, count: int) -> None:
        self.cloud, self.cell = cloud, cell
        self._prefix = uuid.uuid4().hex[:6]
        self._trait = f"CUSTOM_TEST_{self._prefix.upper()}"
        self.nodes = {}  # uuid by name
        for number in range(count):
            self.add_host(f"h{number}", waits=False)
        self.hosts = sorted(self.nodes)
        cloud.wait_for_hosts(*self.hosts)

    def add_host(self, name, *, cell=None, traits=(), **more):
        """Add a host; return its name."""
        host = f"{self._prefix}-{name}"
        self.nodes[host] = self.cloud.add_host(cell or self.cell, host, traits=[self._trait, *traits], **more)
        return host

    def add_trait(self):
        """Create a trait that no host has; return its name."""
        trait = f"{self._trait}_MORE"
        self.cloud.placement("PUT", f"/traits/{trait}")
        return trait

    def _fields(self, *, vcpus=1, extra_specs=None, **fields):
        wanted = {f"trait:{self._trait}": "required"} | (extra_specs or {})
        return {"flavor": flavor(vcpus=vcpus, extra_specs=wanted), **fields}

    def select(self, *uuids, **fields):
        """Call as a conductor does; return the fields of the selections of each instance."""
        return self.cloud.select(*uuids, **self._fields(**fields))

    def host_of(self, number, **fields):
        """Call for one instance; return the name of the chosen host."""
        return self.cloud.host_of(number, **self._fields(**fields))

    def refuse(self, *uuids, **fields):
        """Call as a conductor does; return the reason of the refusal."""
        return self.cloud.refuse(*uuids, **self._fields(**fields))

    def claim(self, number, host):
        """Claim as Nova does without its scheduler."""
        self.cloud.claim(number, {self.nodes[host]: {"VCPU": 1, "MEMORY_MB": 64}})

    def move_allocations(self, number, migration):
        """Move the allocations of an instance to a migration, as a conductor does before a resize."""
        self.cloud.move_allocations(number, migration)

    def wait_for(self, holds):
        """Wait until the hosts in Roost meet a condition."""
        wait_until(lambda: holds(self.cloud.hosts()))

    def wait_for_instances(self, host, count=1):
        """Wait until Roost counts instances on a host."""
        self.wait_for(lambda hosts: hosts[host]["instances"] == count)

    def cast_aggregate(self, aggregate):
        """Send the cast of Nova's API after a change of an aggregate."""
        changed = nova_object("Aggregate", "1.3", uuid=aggregate, hosts=[], metadata={})
        self.cloud.cast("update_aggregates", "4.1", {"aggregates": [changed]})
