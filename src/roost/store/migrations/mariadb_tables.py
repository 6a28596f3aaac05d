"""The tables of a new MariaDB database, at the version of ``BASELINE``; later versions are migrations.

MariaDB commits after each statement that creates a table, so each of them can run again.
"""

# The schema version of these tables. Roost supports MariaDB from this version on.
BASELINE = "0012"

# Unique texts compare byte by byte, with trailing blanks. A text of an index has at most 255 characters.
# Indexes replace the partial indexes of PostgreSQL. Their computed columns are stored: while other connections write,
# MariaDB 10.11 misses new rows of finished commits in an index on a virtual column.
# ``guard`` changes with each transaction whose verdict depends on a row: a row lock holds on one node of a cluster
# only, but two nodes never commit changes of one row at the same time.
_TABLES = """
symbol (kind {text}, id {key}, name {text}, UNIQUE (kind, name));
provider (
    id {key}, uuid {uuid} NOT NULL UNIQUE, name {text} UNIQUE, parent_id BIGINT, root_id {integer}, version {integer},
    INDEX provider_root (root_id));
inventory (
    id {key}, total {integer}, reserved {integer}, min_unit {integer}, max_unit {integer}, step_size {integer},
    allocation_ratio {real}, used {integer}, {guard});
provider_trait (provider_id {integer}, trait_id {integer}, PRIMARY KEY (provider_id, trait_id));
provider_aggregate (provider_id {integer}, aggregate_id {integer}, PRIMARY KEY (provider_id, aggregate_id));
aggregate (id {key}, uuid {uuid} NOT NULL UNIQUE, name {long}, metadata {long}, version {integer});
host (
    id {key}, provider_id {integer} UNIQUE, host {text}, node {text}, facts {bytes}, version {integer},
    UNIQUE (host, node));
server_group (
    id {key}, uuid {uuid} NOT NULL UNIQUE, name {long}, policy {text}, max_server_per_host {integer}, {guard});
place (
    group_id {integer}, scope {integer}, holder {integer}, members {integer}, {guard}, PRIMARY KEY (group_id, scope));
consumer (
    id {key}, uuid {uuid} NOT NULL UNIQUE, project_id {long}, user_id {long}, type_id {integer}, generation {integer});
allocation (
    consumer_id {integer}, inventory_id {integer}, amount {integer}, PRIMARY KEY (consumer_id, inventory_id));
instance (
    consumer_id {key}, host_id {integer}, flavor_id {integer}, image_id {integer}, group_id {integer},
    scope {integer}, holder {integer}, INDEX instance_group (group_id));
document (
    id {key}, kind {text}, fingerprint VARBINARY(255) NOT NULL, body {bytes}, UNIQUE (kind, fingerprint));
sequence (kind {text} PRIMARY KEY, next {integer});
decision (
    id {key}, uuid {uuid} NOT NULL, decided_at_s {real}, outcome {text}, project_id {long}, settings_id {integer},
    hosts {long}, reason {long}, body {bytes}, INDEX decision_uuid (uuid), INDEX decision_outcome (outcome, id));
writer (
    id {key}, previous {integer}, process {integer}, version {text}, started_at_s {real}, retired BIGINT);
feed (
    position BIGINT PRIMARY KEY AUTO_INCREMENT, written_at_s {real}, writer {integer}, seq {integer},
    body LONGBLOB NOT NULL, UNIQUE feed_writer (writer, seq));
snapshot (
    position {integer}, part {integer}, made_at_s {real}, seen {long}, body LONGBLOB NOT NULL,
    size BIGINT AS (length(body)) STORED,
    PRIMARY KEY (position, part));
agent (
    host {text} PRIMARY KEY, name {long}, run {uuid} NOT NULL, cell {text}, driver {text}, software {long},
    state {text}, registered_at_s {real}, heard_at_s {real}, fence {integer}, version {integer}, {guard});
instance_status (
    uuid {uuid} PRIMARY KEY, id {integer} UNIQUE, name {long}, project_id {text}, user_id {text}, cell {text},
    host {text}, node {text}, status {text}, task {text}, operation_id {integer}, flavor_id {integer},
    image_id {integer}, request_id {integer}, decision_uuid {uuid}, migration_uuid {uuid}, fault {long},
    created_at_s {real}, changed_at_s {real}, version {integer}, {guard},
    INDEX instance_status_host (host, id), INDEX instance_status_project (project_id, id),
    INDEX instance_status_over (status, changed_at_s));
operation (
    id {key}, uuid {uuid} NOT NULL UNIQUE, kind {text}, instance_uuid {uuid}, turn {integer}, parent_id {integer},
    cell {text}, step {text}, is_undoing {integer}, is_cancelled {integer}, outcome {text}, due_at_s {real},
    owner {text}, owned_until_s {real}, body {bytes}, created_at_s {real}, changed_at_s {real}, version {integer},
    user_id {long}, project_id {long}, request_id {long}, {guard},
    is_ended TINYINT AS (outcome <> '') STORED,
    INDEX operation_due (is_ended, cell, due_at_s, id), INDEX operation_instance (instance_uuid, id),
    INDEX operation_parent (parent_id, id), INDEX operation_over (is_ended, changed_at_s));
orders (
    id {key}, operation_id {integer}, number {integer}, host {text}, instance_uuid {uuid}, turn {integer},
    action {text}, body {bytes}, state {text}, run {uuid}, answer {bytes}, version {integer}, {guard},
    is_open TINYINT AS (state IN ('waiting', 'taken')) STORED,
    UNIQUE (operation_id, number), INDEX orders_open (is_open, host, id));
migration (
    uuid {uuid} PRIMARY KEY, id {integer} UNIQUE, instance_uuid {uuid} NOT NULL, kind {text}, status {text},
    source_host {text}, source_node {text}, target_host {text}, target_node {text}, old_flavor_id {integer},
    new_flavor_id {integer}, operation_id {integer}, created_at_s {real}, changed_at_s {real}, version {integer},
    {guard}, INDEX migration_instance (instance_uuid, id), INDEX migration_status (status, id));
lease (name {text} PRIMARY KEY, owner {long}, until_s {real}, version {integer}, {guard});
event (
    id {key}, at_s {real}, instance_uuid {uuid}, operation_id {integer}, kind {text}, body {bytes},
    INDEX event_instance (instance_uuid, at_s, id), INDEX event_operation (operation_id, at_s, id),
    INDEX event_at (at_s, id));
change_record (
    id {key}, at_s {real}, kind {text}, object {text}, user_id {long}, project_id {long}, roles {long},
    request_id {long}, body {bytes},
    is_rare TINYINT AS (kind NOT IN ('allocation.update', 'allocation.delete', 'decision.create', 'decision.next',
        'instance.release')) STORED,
    INDEX change_record_at (at_s, id), INDEX change_record_object (object, at_s, id),
    INDEX change_record_rare (is_rare, at_s, id));
upkeep (name {text} PRIMARY KEY, at_s {real}, findings {integer}, size_bytes {integer});
history (minute {integer}, part {text}, amounts {bytes}, counts {bytes}, PRIMARY KEY (minute, part));
heartbeat (
    process {key}, version {text}, `schema` {text}, machine {text}, started_at_s {real}, heard_at_s {real},
    decided_at_s DOUBLE);
compatibility (readable_from VARCHAR(32) PRIMARY KEY);
turn (name {text} PRIMARY KEY, number {integer}, owner {text} DEFAULT '', until_s {real} DEFAULT 0)
"""
_TYPES = {
    "key": "BIGINT PRIMARY KEY",
    "integer": "BIGINT NOT NULL",
    "real": "DOUBLE NOT NULL",
    "text": "VARCHAR(255) NOT NULL",
    "long": "MEDIUMTEXT NOT NULL",
    "bytes": "MEDIUMBLOB NOT NULL",
    "uuid": "BINARY(16)",
    "guard": "guard TINYINT NOT NULL DEFAULT 0",
}
_OPTIONS = "ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
# Transactions of one kind write the row of their kind in ``turn``, so they commit one after the other on any node.
# An empty database gets an empty snapshot.
_TURNS = """
INSERT INTO turn (name, number) VALUES ('structure', 0), ('writer', 0), ('snapshot', 0), ('creations', 0)
ON DUPLICATE KEY UPDATE name = turn.name"""
_SEQUENCES = """
INSERT INTO sequence (kind, next) VALUES ('writer', 0), ('epoch', 0) ON DUPLICATE KEY UPDATE next = sequence.next"""
_OLDEST = f"""
INSERT INTO compatibility (readable_from) SELECT '{BASELINE}' FROM (SELECT 1) AS one
WHERE NOT EXISTS (SELECT 1 FROM compatibility)"""  # noqa: S608  # our text
_SNAPSHOT = """
INSERT INTO snapshot (position, part, made_at_s, seen, body)
SELECT 0, 0, UNIX_TIMESTAMP(SYSDATE(6)), 'w0 ', '' FROM (SELECT 1) AS one
WHERE NOT EXISTS (SELECT 1 FROM feed) AND NOT EXISTS (SELECT 1 FROM symbol)
ON DUPLICATE KEY UPDATE seen = snapshot.seen"""


def statements() -> list[str]:
    """Return the statements for missing tables, and for their first rows."""
    tables = [table.strip() for table in _TABLES.format(**_TYPES).split(";\n")]
    return [
        *(f"CREATE TABLE IF NOT EXISTS {table} {_OPTIONS}" for table in tables),
        _TURNS,
        _SEQUENCES,
        _OLDEST,
        _SNAPSHOT,
    ]
