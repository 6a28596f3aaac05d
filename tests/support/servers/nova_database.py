"""Databases of a Nova with rows of cells, hosts, aggregates and instances, on SQLite, MariaDB or PostgreSQL.

The schema is that of the reference nova if it is installed, else the tables below.
"""

import fcntl
import json
import os
import shutil
import subprocess
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    delete,
    insert,
    inspect,
    select,
    update,
)

from roost.compat.upstream.sql_drivers import driver_url
from roost.machine import SystemClock
from tests.differential.scheduler import nova

CELL0 = "00000000-0000-0000-0000-000000000000"
API_METADATA, CELL_METADATA = MetaData(), MetaData()


def _table(metadata, name, *columns):
    times = (Column("created_at", DateTime), Column("updated_at", DateTime))
    return Table(name, metadata, Column("id", Integer, primary_key=True), *times, *columns)


def _deletion():
    return Column("deleted", Integer), Column("deleted_at", DateTime)


def _text(*names, kind=None, nullable=True):
    return [Column(name, kind or String(255), nullable=nullable) for name in names]


def _numbers(*names, nullable=True):
    return [Column(name, Integer, nullable=nullable) for name in names]


CELL_MAPPINGS = _table(
    API_METADATA,
    "cell_mappings",
    Column("uuid", String(36), nullable=False, unique=True),
    *_text("name"),
    *_text("transport_url", "database_connection", kind=Text()),
    Column("disabled", Boolean),
)
HOST_MAPPINGS = _table(
    API_METADATA,
    "host_mappings",
    *_numbers("cell_id", nullable=False),
    Column("host", String(255), nullable=False, unique=True),
)
AGGREGATES = _table(API_METADATA, "aggregates", Column("uuid", String(36)), *_text("name"))
AGGREGATE_HOSTS = _table(API_METADATA, "aggregate_hosts", *_text("host"), *_numbers("aggregate_id", nullable=False))
AGGREGATE_METADATA = _table(
    API_METADATA, "aggregate_metadata", *_numbers("aggregate_id", nullable=False), *_text("key", "value")
)
SERVICES = _table(
    CELL_METADATA,
    "services",
    *_deletion(),
    *_text("uuid", "host", "binary", "topic", "disabled_reason"),
    *_numbers("report_count", nullable=False),
    *_numbers("version"),
    Column("disabled", Boolean),
    Column("forced_down", Boolean),
    Column("last_seen_up", DateTime),
    UniqueConstraint("host", "binary", "deleted", name="uniq_services0host0binary0deleted"),
)
COMPUTE_NODES = _table(
    CELL_METADATA,
    "compute_nodes",
    *_deletion(),
    *_numbers("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", nullable=False),
    *_numbers("service_id", "free_ram_mb", "free_disk_gb", "disk_available_least", "mapped"),
    *_numbers("current_workload", "running_vms"),
    *_text("hypervisor_type", "cpu_info", kind=Text(), nullable=False),
    *_numbers("hypervisor_version", nullable=False),
    *_text("uuid", "host", "hypervisor_hostname", "host_ip"),
    *_text("supported_instances", "metrics", "pci_stats", "stats", "numa_topology", kind=Text()),
    *[Column(f"{name}_allocation_ratio", Float) for name in ("cpu", "ram", "disk")],
)
INSTANCES = _table(
    CELL_METADATA,
    "instances",
    *_deletion(),
    Column("uuid", String(36), nullable=False, unique=True),
    *_text("host", "node", "project_id", "user_id", "vm_state", "task_state"),
    Column("hidden", Boolean),
)


def template(folder: Path) -> Path | None:
    """Return a folder with the SQLite files ``api`` and ``cell`` of the reference nova; None: it is not installed.

    Args:
        folder: one for all workers of a test run; the first worker creates the files.
    """
    program = nova.python()
    if program is None:
        return None
    target = folder / "nova-schema"
    with (folder / "nova-schema.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / "ready").exists():
            target.mkdir(exist_ok=True)
            (target / "nova.conf").write_text(
                f"[api_database]\nconnection = sqlite:///{target / 'api'}\n"
                f"[database]\nconnection = sqlite:///{target / 'cell'}\n"
            )
            manage = [program, program.with_name("nova-manage"), "--config-file", target / "nova.conf"]
            for words in (["api_db", "sync"], ["db", "sync", "--local_cell"]):
                subprocess.run([*manage, *words], check=True, capture_output=True)
            (target / "ready").touch()
    return target


def shared_template(paths) -> Path | None:
    """Return the template of this test run.

    Args:
        paths: pytest's factory of folders.
    """
    folder = paths.getbasetemp()
    return template(folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder)


class MovingClock:
    """A clock that a test moves on; durations are real."""

    def __init__(self, seconds):
        self.seconds = seconds

    def now_s(self):
        """Return seconds since the epoch."""
        return self.seconds

    def elapsed_s(self):
        """Return the seconds of a real clock."""
        return time.perf_counter()


class SkewedClock:
    """The real clock, with a difference in seconds."""

    def __init__(self, skew_s):
        self._real, self._skew_s = SystemClock(), skew_s

    def now_s(self):
        """Return seconds since the epoch."""
        return self._real.now_s() + self._skew_s


class NovaDatabase:
    """The API database of a Nova, with cells. All rows get the time of ``clock``.

    Args:
        api_url: URL of the API database.
        schema: result of ``template``.
        clock: a clock of Roost; without one, a test moves the clock on.
    """

    def __init__(self, api_url: str, *, schema: Path | None = None, clock=None) -> None:
        self.api_url, self._schema = api_url, schema
        self.clock = clock or MovingClock(1_800_000_000.0)
        self._engines = {}
        self.cells: dict[str, str] = {}  # URL by uuid
        self._create(api_url, API_METADATA, "api")
        self._add_mapping(CELL0, "cell0", "none:///")

    def now(self):
        """Return the time as Nova stores it."""
        return datetime.fromtimestamp(int(self.clock.now_s()), UTC).replace(tzinfo=None)

    def add_cell(self, url, *, name="cell1", mapping_url=None, disabled=False):
        """Create the database of a cell and map it; return its uuid.

        Args:
            mapping_url: URL or template in the mapping, if it is another one.
        """
        cell = str(uuid.uuid4())
        self._create(url, CELL_METADATA, "cell")
        self.cells[cell] = url
        self._add_mapping(cell, name, mapping_url or url, disabled=disabled)
        return cell

    def set_cell(self, cell, **values):
        """Change the mapping of a cell."""
        self.api(update(CELL_MAPPINGS).where(CELL_MAPPINGS.c.uuid == cell).values(**values))

    def add_host(self, cell, host, *, node=None, mapped=True, service=True, **values):
        """Add a compute node with its service and mapping; return its uuid.

        Args:
            values: columns of the compute node.
        """
        row = {"uuid": str(uuid.uuid4()), "host": host, "hypervisor_hostname": node or host, "deleted": 0}
        row |= {"created_at": self.now(), "updated_at": self.now(), "mapped": int(mapped)} | NODE | values
        self.cell(cell, insert(COMPUTE_NODES).values(row))
        if service and not self._service(cell, host):
            self.add_service(cell, host)
        if mapped:
            self.map_host(cell, host)
        return row["uuid"]

    def add_hosts(self, cell, hosts, **values):
        """Add many compute nodes with their services and mappings in a few statements; return their uuids by host.

        Args:
            values: columns of the compute nodes.
        """
        created = {"created_at": self.now(), "updated_at": self.now()}
        nodes = [
            created | NODE | values | {"uuid": str(uuid.uuid4()), "host": host, "hypervisor_hostname": host}
            for host in hosts
        ]
        self.cell(cell, insert(COMPUTE_NODES), [row | {"deleted": 0, "mapped": 1} for row in nodes])
        self.cell(cell, insert(SERVICES), [self._service_row(host) for host in hosts])
        cell_id = self.api(select(CELL_MAPPINGS.c.id).where(CELL_MAPPINGS.c.uuid == cell))[0][0]
        mappings = [{"host": host, "cell_id": cell_id, "created_at": self.now()} for host in hosts]
        self.api(insert(HOST_MAPPINGS), mappings)
        return {row["host"]: row["uuid"] for row in nodes}

    def add_service(self, cell, host, **values):
        """Add a service nova-compute that has just reported."""
        self.cell(cell, insert(SERVICES).values(self._service_row(host) | values))

    def _service_row(self, host):
        return {
            "uuid": str(uuid.uuid4()),
            "host": host,
            "binary": "nova-compute",
            "topic": "compute",
            "report_count": 1,
            "disabled": False,
            "forced_down": False,
            "deleted": 0,
            "version": 74,
            "created_at": self.now(),
            "last_seen_up": self.now(),
        }

    def report(self, cell, *hosts):
        """Let services report; without hosts: all."""
        values = {"report_count": SERVICES.c.report_count + 1, "last_seen_up": self.now(), "updated_at": self.now()}
        query = update(SERVICES).where(SERVICES.c.deleted == 0).values(**values)
        self.cell(cell, query.where(SERVICES.c.host.in_(hosts)) if hosts else query)

    def kill_service(self, cell, host, *, since_s=3600.0):
        """Let the last report of a service be long ago."""
        seen = self.now() - timedelta(seconds=since_s)
        self.set_service(cell, host, last_seen_up=seen)

    def set_service(self, cell, host, **values):
        """Change the service nova-compute of a host."""
        query = update(SERVICES).where(SERVICES.c.host == host, SERVICES.c.deleted == 0)
        self.cell(cell, query.values(**{"updated_at": self.now()} | values))

    def set_node(self, cell, node_uuid, **values):
        """Change a compute node."""
        query = update(COMPUTE_NODES).where(COMPUTE_NODES.c.uuid == node_uuid)
        self.cell(cell, query.values(**{"updated_at": self.now()} | values))

    def delete_host(self, cell, host, *, hard=False):
        """Delete a service and its compute nodes, as Nova does: the time of the update stays."""
        for table in (SERVICES, COMPUTE_NODES):
            values = {"deleted": table.c.id, "deleted_at": self.now()}
            self.cell(cell, (delete(table) if hard else update(table).values(**values)).where(table.c.host == host))

    def map_host(self, cell, host):
        """Map a host to its cell."""
        query = select(HOST_MAPPINGS.c.id).where(HOST_MAPPINGS.c.host == host)
        if not self.api(query):
            cell_id = self.api(select(CELL_MAPPINGS.c.id).where(CELL_MAPPINGS.c.uuid == cell))[0][0]
            self.api(insert(HOST_MAPPINGS).values(host=host, cell_id=cell_id, created_at=self.now()))

    def unmap_host(self, host):
        """Delete the mapping of a host."""
        self.api(delete(HOST_MAPPINGS).where(HOST_MAPPINGS.c.host == host))

    def add_instance(self, cell, host, *, node=None, **values):
        """Add an instance; return its uuid."""
        row = {"uuid": str(uuid.uuid4()), "host": host, "node": node or host, "project_id": "p", "user_id": "u"}
        row |= {"created_at": self.now(), "updated_at": self.now(), "deleted": 0, "hidden": False}
        self.cell(cell, insert(INSTANCES).values(row | values))
        return (row | values)["uuid"]

    def set_instance(self, cell, instance, **values):
        """Change an instance."""
        query = update(INSTANCES).where(INSTANCES.c.uuid == instance)
        self.cell(cell, query.values(**{"updated_at": self.now()} | values))

    def delete_instance(self, cell, instance, *, hard=False):
        """Delete an instance; the time of the update stays."""
        query = delete(INSTANCES) if hard else update(INSTANCES).values(deleted=INSTANCES.c.id, deleted_at=self.now())
        self.cell(cell, query.where(INSTANCES.c.uuid == instance))

    def add_aggregate(self, name, *, hosts=(), metadata=None):
        """Add an aggregate; return its uuid."""
        created = {"created_at": self.now()}
        aggregate = str(uuid.uuid4())
        self.api(insert(AGGREGATES).values(uuid=aggregate, name=name, **created))
        number = self.api(select(AGGREGATES.c.id).where(AGGREGATES.c.uuid == aggregate))[0][0]
        for host in hosts:
            self.api(insert(AGGREGATE_HOSTS).values(host=host, aggregate_id=number, **created))
        for key, value in (metadata or {}).items():
            self.api(insert(AGGREGATE_METADATA).values(key=key, value=value, aggregate_id=number, **created))
        return aggregate

    def create_cell_database(self, url):
        """Create the tables of a cell without a mapping."""
        self._create(url, CELL_METADATA, "cell")

    def mapping_of(self, cell):
        """Return the mapping of a cell, by column."""
        (row,) = self.api(select(CELL_MAPPINGS).where(CELL_MAPPINGS.c.uuid == cell))
        names = ("uuid", "name", "transport_url", "database_connection", "disabled")
        return {"id": row.id} | {name: getattr(row, name) for name in names}

    def aggregate_numbers(self):
        """Return the number of each aggregate, by uuid."""
        return {row.uuid: row.id for row in self.api(select(AGGREGATES.c.uuid, AGGREGATES.c.id))}

    def set_metadata(self, aggregate, metadata):
        """Add metadata to an aggregate."""
        number = self.api(select(AGGREGATES.c.id).where(AGGREGATES.c.uuid == aggregate))[0][0]
        rows = [{"key": key, "value": value, "aggregate_id": number} for key, value in metadata.items()]
        self.api(insert(AGGREGATE_METADATA), [{**row, "created_at": self.now()} for row in rows])

    def delete_aggregate(self, aggregate):
        """Delete an aggregate with its hosts and metadata."""
        number = self.api(select(AGGREGATES.c.id).where(AGGREGATES.c.uuid == aggregate))[0][0]
        for table in (AGGREGATE_HOSTS, AGGREGATE_METADATA):
            self.api(delete(table).where(table.c.aggregate_id == number))
        self.api(delete(AGGREGATES).where(AGGREGATES.c.id == number))

    def api(self, statement, rows=None):
        """Execute a statement on the API database; return its rows."""
        return self._execute(self.api_url, statement, rows)

    def cell(self, cell, statement, rows=None):
        """Execute a statement on the database of a cell; return its rows."""
        return self._execute(self.cells[cell], statement, rows)

    def close(self):
        """Close all connections."""
        for engine in self._engines.values():
            engine.dispose()

    def _service(self, cell, host):
        return self.cell(cell, select(SERVICES.c.id).where(SERVICES.c.host == host, SERVICES.c.deleted == 0))

    def _add_mapping(self, cell, name, url, **values):
        row = {"uuid": cell, "name": name, "database_connection": url, "transport_url": "none:///", "disabled": False}
        self.api(insert(CELL_MAPPINGS).values(row | values))

    def _create(self, url, metadata, kind):
        """Create the tables: a copy of the template, or on another kind of server, its columns."""
        if url.startswith("sqlite") and self._schema is not None:
            shutil.copyfile(self._schema / kind, url.removeprefix("sqlite:///"))
            return
        engine = self._engine(url)
        if self._schema is not None:
            metadata = _reflect(self._schema / kind, [table.name for table in metadata.sorted_tables])
        metadata.drop_all(engine)
        metadata.create_all(engine)

    def _execute(self, url, statement, rows):
        with self._engine(url).begin() as connection:
            result = connection.execute(statement, rows) if rows else connection.execute(statement)
            return result.fetchall() if result.returns_rows else []

    def _engine(self, url):
        if url not in self._engines:
            self._engines[url] = create_engine(driver_url(url))
        return self._engines[url]


def _reflect(path, names):
    """Return tables of an SQLite file, with types that every database has."""
    engine = create_engine(f"sqlite:///{path}")
    found = MetaData()
    found.reflect(engine, only=names)
    engine.dispose()
    for table in found.sorted_tables:
        for column in table.columns:
            column.type = column.type.as_generic()
    return found


def missing_columns(schema: Path):
    """Return the columns of the tables above that the schema of the reference lacks, to keep both equal."""
    missing = []
    for kind, metadata in (("api", API_METADATA), ("cell", CELL_METADATA)):
        engine = create_engine(f"sqlite:///{schema / kind}")
        for table in metadata.sorted_tables:
            known = {column["name"] for column in inspect(engine).get_columns(table.name)}
            missing += [f"{table.name}.{column.name}" for column in table.columns if column.name not in known]
        engine.dispose()
    return missing


# A compute node as the libvirt driver reports it, without devices.
NODE = {
    "vcpus": 8,
    "memory_mb": 16384,
    "local_gb": 100,
    "vcpus_used": 0,
    "memory_mb_used": 512,
    "local_gb_used": 0,
    "free_ram_mb": 15872,
    "free_disk_gb": 100,
    "hypervisor_type": "QEMU",
    "hypervisor_version": 8002002,
    "host_ip": "192.0.2.10",
    "cpu_allocation_ratio": 4.0,
    "ram_allocation_ratio": 1.0,
    "disk_allocation_ratio": 1.0,
    "cpu_info": json.dumps({"arch": "x86_64", "model": "EPYC", "features": ["avx2"]}),
    "supported_instances": json.dumps([["x86_64", "qemu", "hvm"], ["x86_64", "kvm", "hvm"]]),
    "stats": json.dumps({"num_instances": "3", "io_workload": "2", "failed_builds": "1"}),
    "metrics": "[]",
}
