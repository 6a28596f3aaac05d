"""Tables for the operations of conductors, and for agents with their orders and replies."""

from alembic import op

revision = "0005"
down_revision = "0004"

# Indexes with WHERE are partial. Searches for work read only open rows, so that they stay fast as finished rows
# accumulate; the deletion of old rows reads only finished ones.
_BOTH = """
CREATE TABLE agent (
    host TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, run {uuid} NOT NULL, cell TEXT NOT NULL, driver TEXT NOT NULL,
    software TEXT NOT NULL, state TEXT NOT NULL, registered_at_s {real} NOT NULL, heard_at_s {real} NOT NULL,
    fence {integer} NOT NULL, version {integer} NOT NULL);
CREATE TABLE instance_status (
    uuid {uuid} PRIMARY KEY NOT NULL, id {integer} NOT NULL UNIQUE, name TEXT NOT NULL, project_id TEXT NOT NULL,
    user_id TEXT NOT NULL, cell TEXT NOT NULL, host TEXT NOT NULL, node TEXT NOT NULL, status TEXT NOT NULL,
    task TEXT NOT NULL, operation_id {integer} NOT NULL, flavor_id {integer} NOT NULL, image_id {integer} NOT NULL,
    request_id {integer} NOT NULL, decision_uuid {uuid}, migration_uuid {uuid}, fault TEXT NOT NULL,
    created_at_s {real} NOT NULL, changed_at_s {real} NOT NULL, version {integer} NOT NULL);
CREATE INDEX instance_status_host ON instance_status (host, id);
CREATE INDEX instance_status_project ON instance_status (project_id, id);
CREATE INDEX instance_status_over ON instance_status (changed_at_s) WHERE status = 'DELETED';
CREATE TABLE operation (
    id {key}, uuid {uuid} NOT NULL UNIQUE, kind TEXT NOT NULL, instance_uuid {uuid}, turn {integer} NOT NULL,
    parent_id {integer} NOT NULL, cell TEXT NOT NULL, step TEXT NOT NULL, is_undoing {integer} NOT NULL,
    is_cancelled {integer} NOT NULL, outcome TEXT NOT NULL, due_at_s {real} NOT NULL, owner TEXT NOT NULL,
    owned_until_s {real} NOT NULL, body {bytes} NOT NULL, created_at_s {real} NOT NULL, changed_at_s {real} NOT NULL,
    version {integer} NOT NULL);
CREATE INDEX operation_due ON operation (cell, due_at_s, id) WHERE outcome = '';
CREATE INDEX operation_instance ON operation (instance_uuid, id);
CREATE INDEX operation_parent ON operation (parent_id, id);
CREATE INDEX operation_over ON operation (changed_at_s) WHERE outcome <> '';
CREATE TABLE orders (
    id {key}, operation_id {integer} NOT NULL, number {integer} NOT NULL, host TEXT NOT NULL, instance_uuid {uuid},
    turn {integer} NOT NULL, action TEXT NOT NULL, body {bytes} NOT NULL, state TEXT NOT NULL, run {uuid},
    answer {bytes} NOT NULL, version {integer} NOT NULL, UNIQUE (operation_id, number));
CREATE INDEX orders_open ON orders (host, id) WHERE state IN ('waiting', 'taken');
CREATE TABLE migration (
    uuid {uuid} PRIMARY KEY NOT NULL, id {integer} NOT NULL UNIQUE, instance_uuid {uuid} NOT NULL, kind TEXT NOT NULL,
    status TEXT NOT NULL, source_host TEXT NOT NULL, source_node TEXT NOT NULL, target_host TEXT NOT NULL,
    target_node TEXT NOT NULL, old_flavor_id {integer} NOT NULL, new_flavor_id {integer} NOT NULL,
    operation_id {integer} NOT NULL, created_at_s {real} NOT NULL, changed_at_s {real} NOT NULL,
    version {integer} NOT NULL);
CREATE INDEX migration_instance ON migration (instance_uuid, id);
CREATE INDEX migration_status ON migration (status, id);
CREATE TABLE lease (
    name TEXT PRIMARY KEY NOT NULL, owner TEXT NOT NULL, until_s {real} NOT NULL, version {integer} NOT NULL);
CREATE TABLE event (
    id {key}, at_s {real} NOT NULL, instance_uuid {uuid}, operation_id {integer} NOT NULL, kind TEXT NOT NULL,
    body {bytes} NOT NULL);
CREATE INDEX event_instance ON event (instance_uuid, at_s, id);
CREATE INDEX event_operation ON event (operation_id, at_s, id);
CREATE INDEX event_at ON event (at_s, id)
"""

_SQLITE = {"key": "INTEGER PRIMARY KEY NOT NULL", "integer": "INTEGER", "real": "REAL", "bytes": "BLOB", "uuid": "BLOB"}
_POSTGRESQL = {
    "key": "BIGINT PRIMARY KEY",
    "integer": "BIGINT",
    "real": "DOUBLE PRECISION",
    "bytes": "BYTEA",
    "uuid": "UUID",
}


def upgrade() -> None:
    """Create the tables."""
    connection = op.get_bind()
    words = _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL
    for statement in _BOTH.format(**words).split(";"):
        connection.exec_driver_sql(statement.strip())
