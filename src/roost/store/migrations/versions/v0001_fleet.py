"""Tables for the fleet, and for consumers with their allocations."""

from alembic import op

revision = "0001"
down_revision = None

# Claims touch as few distinct pages as possible. A provider's inventories and its generation are neighbours
# (id = provider << 16 | class, with the generation as class 0). Allocations are stored in the order of their
# consumers. Nothing is indexed by provider, because processes have this index in memory.
_BOTH = """
CREATE TABLE symbol (kind TEXT NOT NULL, id {key}, name TEXT NOT NULL, UNIQUE (kind, name));
CREATE TABLE provider (
    id {key}, uuid {uuid} NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE,
    parent_id {integer}, root_id {integer} NOT NULL, version {integer} NOT NULL);
CREATE INDEX provider_root ON provider (root_id);
CREATE TABLE inventory (
    id {key}, total {integer} NOT NULL, reserved {integer} NOT NULL,
    min_unit {integer} NOT NULL, max_unit {integer} NOT NULL, step_size {integer} NOT NULL,
    allocation_ratio {real} NOT NULL, used {integer} NOT NULL){roomy};
CREATE TABLE provider_trait (
    provider_id {integer} NOT NULL, trait_id {integer} NOT NULL, PRIMARY KEY (provider_id, trait_id)){clustered};
CREATE TABLE provider_aggregate (
    provider_id {integer} NOT NULL, aggregate_id {integer} NOT NULL,
    PRIMARY KEY (provider_id, aggregate_id)){clustered};
CREATE TABLE aggregate (
    id {key}, uuid {uuid} NOT NULL UNIQUE, name TEXT NOT NULL, metadata TEXT NOT NULL, version {integer} NOT NULL);
CREATE TABLE host (
    id {key}, provider_id {integer} NOT NULL UNIQUE, host TEXT NOT NULL, node TEXT NOT NULL,
    facts {bytes} NOT NULL, version {integer} NOT NULL, UNIQUE (host, node));
CREATE TABLE server_group (
    id {key}, uuid {uuid} NOT NULL UNIQUE, name TEXT NOT NULL, policy TEXT NOT NULL,
    max_server_per_host {integer} NOT NULL);
CREATE TABLE place (
    group_id {integer} NOT NULL, scope {integer} NOT NULL, holder {integer} NOT NULL, members {integer} NOT NULL,
    PRIMARY KEY (group_id, scope)){clustered};
CREATE TABLE consumer (
    id {key}, uuid {uuid} NOT NULL UNIQUE, project_id TEXT NOT NULL, user_id TEXT NOT NULL,
    type_id {integer} NOT NULL, generation {integer} NOT NULL);
CREATE TABLE allocation (
    consumer_id {integer} NOT NULL, inventory_id {integer} NOT NULL, amount {integer} NOT NULL,
    PRIMARY KEY (consumer_id, inventory_id)){clustered};
CREATE TABLE instance (
    consumer_id {key}, host_id {integer} NOT NULL, flavor_id {integer} NOT NULL, image_id {integer} NOT NULL,
    group_id {integer} NOT NULL, scope {integer} NOT NULL, holder {integer} NOT NULL);
CREATE TABLE document (
    id {key}, kind TEXT NOT NULL, fingerprint {bytes} NOT NULL, body {bytes} NOT NULL, UNIQUE (kind, fingerprint));
CREATE TABLE sequence (kind TEXT NOT NULL PRIMARY KEY, next {integer} NOT NULL)
"""

_SQLITE = {
    "key": "INTEGER PRIMARY KEY NOT NULL",
    "integer": "INTEGER",
    "real": "REAL",
    "bytes": "BLOB",
    "uuid": "BLOB",
    "clustered": " WITHOUT ROWID",
    "roomy": "",
}
# With free space in its page, most updates of ``used`` stay in that page, and the index does not change.
_POSTGRESQL = {
    "key": "BIGINT PRIMARY KEY",
    "integer": "BIGINT",
    "real": "DOUBLE PRECISION",
    "bytes": "BYTEA",
    "uuid": "UUID",
    "clustered": "",
    "roomy": " WITH (fillfactor = 50)",
}


def upgrade() -> None:
    """Create the tables."""
    connection = op.get_bind()
    words = _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL
    for statement in _BOTH.format(**words).split(";"):
        connection.exec_driver_sql(statement.strip())
