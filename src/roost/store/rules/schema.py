"""Definitions of the tables, to build the statements of each database."""

from typing import Literal, NamedTuple

import msgspec

from roost.errors import StoreOutdated
from roost.model.work import work_rows

# The newest migration. Migrations are numbered, so that an older program recognises a newer database.
SCHEMA_VERSION = "0012"
# The oldest schema with all tables and columns that this program uses: the newest migration that expands.
SERVED_FROM = "0011"
# The first schema with the tables of heartbeats and writers.
HEARTBEATS_FROM = "0011"
# Versions with the same tables in a backup.
BACKUP_VERSIONS = frozenset({"0009", "0010", "0011", SCHEMA_VERSION})
# The oldest program that may serve a database, as the newest migration that it knows.
READABLE_FROM = "SELECT readable_from FROM compatibility"

ColumnType = Literal["bigint", "float8", "text", "bytea", "uuid"]


class Table(NamedTuple):
    """A table. Its columns are in the order of the fields of its struct."""

    name: str
    columns: tuple[str, ...]
    types: tuple[ColumnType, ...]  # of PostgreSQL; other databases keep uuid and bytea as blobs
    key: tuple[str, ...]  # the key of a row, or of a set of rows replaced as one
    uniques: tuple[tuple[str, ...], ...] = ()
    is_updated: bool = False  # whether changed rows are updated in place, because writers lock them

    def types_of(self, columns: tuple[str, ...]) -> tuple[ColumnType, ...]:
        """Return the types of some columns."""
        return tuple(self.types[self.columns.index(column)] for column in columns)


def _table(name: str, columns: str, *, key: str, uniques: tuple[str, ...] = (), is_updated: bool = False) -> Table:
    """Parse ``column:type`` pairs; a column without a type is a bigint."""
    pairs = [column.partition(":") for column in columns.split()]
    types: list[ColumnType] = []
    for _, _, kind in pairs:
        match kind:
            case "float8" | "text" | "bytea" | "uuid":
                types.append(kind)
            case _:
                types.append("bigint")
    return Table(
        name=name,
        columns=tuple(column for column, _, _ in pairs),
        types=tuple(types),
        key=tuple(key.split()),
        uniques=tuple(tuple(unique.split()) for unique in uniques),
        is_updated=is_updated,
    )


SYMBOL = _table("symbol", "kind:text id name:text", key="id", uniques=("kind name",))
PROVIDER = _table("provider", "id uuid:uuid name:text parent_id root_id version", key="id", uniques=("uuid", "name"))
INVENTORY = _table(
    "inventory",
    "id total reserved min_unit max_unit step_size allocation_ratio:float8 used",
    key="id",
    is_updated=True,
)
PROVIDER_TRAIT = _table("provider_trait", "provider_id trait_id", key="provider_id")
PROVIDER_AGGREGATE = _table("provider_aggregate", "provider_id aggregate_id", key="provider_id")
AGGREGATE = _table("aggregate", "id uuid:uuid name:text metadata:text version", key="id", uniques=("uuid",))
HOST = _table(
    "host",
    "id provider_id host:text node:text facts:bytea version",
    key="id",
    uniques=("provider_id", "host node"),
)
SERVER_GROUP = _table(
    "server_group", "id uuid:uuid name:text policy:text max_server_per_host", key="id", uniques=("uuid",)
)
DOCUMENT = _table("document", "id kind:text fingerprint:bytea body:bytea", key="id", uniques=("kind fingerprint",))
PLACE = _table("place", "group_id scope holder members", key="group_id scope", is_updated=True)
CONSUMER = _table(
    "consumer", "id uuid:uuid project_id:text user_id:text type_id generation", key="id", uniques=("uuid",)
)
ALLOCATION = _table("allocation", "consumer_id inventory_id amount", key="consumer_id")
INSTANCE = _table("instance", "consumer_id host_id flavor_id image_id group_id scope holder", key="consumer_id")
DECISION = _table(
    "decision",
    "id uuid:uuid decided_at_s:float8 outcome:text project_id:text settings_id hosts:text reason:text body:bytea",
    key="id",
)

AGENT = _table(
    "agent",
    "host:text name:text run:uuid cell:text driver:text software:text state:text registered_at_s:float8 "
    "heard_at_s:float8 fence version",
    key="host",
    is_updated=True,
)
INSTANCE_STATUS = _table(
    "instance_status",
    "uuid:uuid id name:text project_id:text user_id:text cell:text host:text node:text status:text task:text "
    "operation_id flavor_id image_id request_id decision_uuid:uuid migration_uuid:uuid fault:text "
    "created_at_s:float8 changed_at_s:float8 version",
    key="uuid",
    uniques=("id",),
    is_updated=True,
)
# Part of INSTANCE_STATUS: the dump reads only these columns.
TASK = _table("instance_status", "uuid:uuid task:text", key="uuid")
OPERATION = _table(
    "operation",
    "id uuid:uuid kind:text instance_uuid:uuid turn parent_id cell:text step:text is_undoing is_cancelled "
    "outcome:text due_at_s:float8 owner:text owned_until_s:float8 body:bytea created_at_s:float8 "
    "changed_at_s:float8 version user_id:text project_id:text request_id:text",
    key="id",
    uniques=("uuid",),
    is_updated=True,
)
ORDERS = _table(
    "orders",
    "id operation_id number host:text instance_uuid:uuid turn action:text body:bytea state:text run:uuid "
    "answer:bytea version",
    key="id",
    uniques=("operation_id number",),
    is_updated=True,
)
MIGRATION = _table(
    "migration",
    "uuid:uuid id instance_uuid:uuid kind:text status:text source_host:text source_node:text target_host:text "
    "target_node:text old_flavor_id new_flavor_id operation_id created_at_s:float8 changed_at_s:float8 version",
    key="uuid",
    uniques=("id",),
    is_updated=True,
)
LEASE = _table("lease", "name:text owner:text until_s:float8 version", key="name", is_updated=True)
EVENT = _table("event", "id at_s:float8 instance_uuid:uuid operation_id kind:text body:bytea", key="id")
CHANGE_RECORD = _table(
    "change_record",
    "id at_s:float8 kind:text object:text user_id:text project_id:text roles:text request_id:text body:bytea",
    key="id",
)
WORK: dict[type[msgspec.Struct], Table] = {
    work_rows.AgentRow: AGENT,
    work_rows.StatusRow: INSTANCE_STATUS,
    work_rows.OperationRow: OPERATION,
    work_rows.OrderRow: ORDERS,
    work_rows.MigrationRow: MIGRATION,
    work_rows.LeaseRow: LEASE,
    work_rows.EventRow: EVENT,
    work_rows.ChangeRow: CHANGE_RECORD,
}

# The last audit and backup, and the row that shows that the database is writable: never in a backup.
UPKEEP = _table("upkeep", "name:text at_s:float8 findings size_bytes", key="name", is_updated=True)
WRITE_CHECK = "write check"

# The amounts of the fleet and its decisions over time. Processes write it beside their commits: it is not in the feed.
HISTORY = _table("history", "minute part:text amounts:bytea counts:bytea", key="minute part")

# The live processes. The times are those of the database server.
HEARTBEAT = _table(
    "heartbeat",
    "process version:text schema:text machine:text started_at_s:float8 heard_at_s:float8 decided_at_s:float8",
    key="process",
)

# The next number of each kind and, on a server, the row ``epoch``, which changes at each restore.
SEQUENCE = _table("sequence", "kind:text next", key="kind")

# Returns a row if the database has content. The standard names do not count: every database has them.
FIND_CONTENT = """
SELECT 1 FROM provider UNION ALL SELECT 1 FROM aggregate UNION ALL SELECT 1 FROM consumer
UNION ALL SELECT 1 FROM server_group UNION ALL SELECT 1 FROM decision
UNION ALL SELECT 1 FROM agent UNION ALL SELECT 1 FROM instance_status UNION ALL SELECT 1 FROM operation
UNION ALL SELECT 1 FROM symbol WHERE substr(name, 1, 7) = 'CUSTOM_' LIMIT 1"""

# Number of ids that a process reserves at once. A restart loses the unused ids of a block. Symbols have blocks of one,
# because the number of a resource class has only 16 bits. Providers and hosts have blocks of one, so that their ids
# rise in the order of creation across processes.
BLOCK_SIZES = {
    "symbol": 1,
    "provider": 1,
    "aggregate": 64,
    "host": 1,
    "group": 64,
    "document": 64,
    "consumer": 4096,
    "decision": 4096,
    "status": 256,
    "operation": 64,
    "order": 256,
    "migration": 64,
    "event": 4096,
    "change": 4096,
}
SEQUENCE_TABLES = {
    "symbol": "symbol",
    "provider": "provider",
    "aggregate": "aggregate",
    "host": "host",
    "group": "server_group",
    "document": "document",
    "consumer": "consumer",
    "decision": "decision",
    "status": "instance_status",
    "operation": "operation",
    "order": "orders",
    "migration": "migration",
    "event": "event",
    "change": "change_record",
}


def select(table: Table, where: str) -> str:
    """Return a statement that reads whole rows of a table."""
    return f"SELECT {', '.join(table.columns)} FROM {table.name} {where}"  # noqa: S608  # names from this file


def put_upkeep(mark: str) -> str:
    """Return the statement that inserts or replaces a row of ``UPKEEP``.

    Args:
        mark: the mark of a parameter.
    """
    kinds = {"text": "text", "float8": "double precision", "bigint": "bigint"}
    values = ", ".join(f"CAST({mark} AS {kinds[kind]})" for kind in UPKEEP.types)
    changes = ", ".join(f"{column} = excluded.{column}" for column in UPKEEP.columns[1:])
    columns = ", ".join(UPKEEP.columns)
    return f"INSERT INTO upkeep ({columns}) VALUES ({values}) ON CONFLICT (name) DO UPDATE SET {changes}"  # noqa: S608


class Schema(NamedTuple):
    """The schema of a database."""

    version: str | None  # None: it has no tables of Roost
    readable_from: str = ""  # the oldest program that may serve it; empty: any


def check_version(found: str | None, place: str, *, readable_from: str = "", is_shared: bool = False) -> None:
    """Refuse a database that this program cannot serve.

    A newer database can be served until an upgrade takes away something that this program uses.

    Args:
        found: the schema version.
        place: the database, in messages.
        readable_from: the oldest program that may serve the database.
        is_shared: whether several processes may serve it.

    Raises:
        StoreOutdated: the schema is too old or too new. For an older database, the message names the upgrade command.
    """
    if found is not None and (not found.isdigit() or readable_from > SCHEMA_VERSION):
        oldest = f", and needs programs with schema {readable_from}" if found.isdigit() else ""
        raise StoreOutdated(
            f"{place} has schema {found}{oldest}, newer than {SCHEMA_VERSION} of this program: use a newer roost"
        )
    if found is None or found < SERVED_FROM:
        option = " (with --expand while older processes run)" if is_shared else ""
        raise StoreOutdated(
            f"{place} has schema {found or 'none'}, older than {SERVED_FROM} of this program: "
            f"run `roost db upgrade`{option} and start again"
        )
