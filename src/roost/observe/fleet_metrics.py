"""Metrics of the fleet and of the database, published by surveys; each declared once."""

from roost.observe.families import Label, declare_survey

_CLASS = Label(
    "resource_class", "resource classes with inventory, at most `monitoring.classes_max`: those with the most providers"
)
_ZONE = Label(
    "zone",
    "availability zones, at most `monitoring.zones_max`: those with the most hosts; the other hosts have `other`; "
    "providers outside of all hosts have `none`",
)
_SURVEY = Label("survey", "`fleet`, `database`, `evidence`")
_KIND = Label("kind", "kinds of operations, 20")

CAPACITY = declare_survey(
    "roost_fleet_capacity",
    "Capacity, in the unit of the class, of hosts in any state.",
    area="fleet",
    labels=(_CLASS, _ZONE),
)
USED = declare_survey(
    "roost_fleet_used", "Allocated amount, in the unit of the class.", area="fleet", labels=(_CLASS, _ZONE)
)
STRANDED = declare_survey(
    "roost_fleet_stranded",
    "Free amount that no instance of average size can use, in the unit of the class.",
    area="fleet",
    labels=(
        _CLASS,
        _ZONE,
        Label("reason", "`other_class`: the host lacks another class; `host`: the host is down or disabled"),
    ),
)
HOSTS = declare_survey(
    "roost_hosts",
    "Hosts. A host that is both down and disabled counts as down.",
    area="fleet",
    labels=(Label("state", "`up`, `down`, `disabled`"), _ZONE),
)
SURVEY_TIME = declare_survey(
    "roost_survey_timestamp_seconds",
    "Time of the last complete survey.",
    area="fleet",
    labels=(_SURVEY,),
)
SURVEY_SECONDS = declare_survey(
    "roost_survey_seconds",
    "Duration of the last survey.",
    area="fleet",
    labels=(_SURVEY,),
)

INSTANCES = declare_survey(
    "roost_instances", "Instances.", area="database", labels=(Label("status", "statuses of instances, 8"),)
)
OPERATIONS_OPEN = declare_survey("roost_operations_open", "Open operations.", area="database", labels=(_KIND,))
OLDEST_OPERATION = declare_survey(
    "roost_operations_oldest_age_seconds", "Age of the oldest open operation.", area="database", labels=(_KIND,)
)
MIGRATIONS_OPEN = declare_survey(
    "roost_migrations_open",
    "Migrations in progress.",
    area="database",
    labels=(Label("kind", "4 kinds"), Label("status", "4 statuses")),
)
ORDERS_OPEN = declare_survey(
    "roost_orders_open",
    "Orders without an answer.",
    area="database",
    labels=(Label("state", "`waiting`: not delivered yet; `taken`"),),
)
AGENTS = declare_survey(
    "roost_agents",
    "Registered agents.",
    area="database",
    labels=(Label("state", "`ready`, `arriving` (its host is not clean yet), `gone`"),),
)
AGENTS_REPORTING = declare_survey(
    "roost_agents_reporting",
    "Agents in contact within `service_down_time`, except those that are gone.",
    area="database",
)
DATABASE_SIZE = declare_survey(
    "roost_database_size_bytes", "Size of the database; for SQLite with its write-ahead log.", area="database"
)
EVIDENCE_ROWS = declare_survey("roost_evidence_rows", "Stored decisions.", area="database")
EVIDENCE_BYTES = declare_survey("roost_evidence_bytes", "Bytes of the stored decisions.", area="database")
BACKUP_TIME = declare_survey(
    "roost_backup_timestamp_seconds",
    "Time of the last `roost db backup`; absent: none.",
    area="database",
)
BACKUP_BYTES = declare_survey("roost_backup_size_bytes", "Size of the last backup.", area="database")
AUDIT_TIME = declare_survey(
    "roost_audit_timestamp_seconds", "Time of the last `roost audit`; absent: none.", area="database"
)
AUDIT_FINDINGS = declare_survey("roost_audit_findings", "Findings of the last audit.", area="database")
