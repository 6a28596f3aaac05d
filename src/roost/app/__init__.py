"""The composition root: what picks implementations, by settings and by where things lie; the library's entrance."""

from roost.app.database_choice import (
    audit_database,
    audit_path,
    check_settings,
    database_of,
    database_with,
    notes_on,
    settings_of,
    sourced_settings,
)
from roost.app.local_conductors import conductor_of
from roost.app.open_roost import open_reader, open_roost, open_scratch, open_stopped, unstored
from roost.app.placement_server import (
    Served,
    import_placement,
    open_in_process,
    open_placement,
    placement_policy,
    placement_served,
    placement_settings,
    serve_placement,
)
from roost.app.reload import Reloader
from roost.app.up import open_own, open_product, serve_product
from roost.product import Roost
from roost.store.audit import audit, orphans
from roost.store.backends import exists, stamp, sync, upgrade, version_of
from roost.store.backup import backup, restore

__all__ = [
    "Reloader",
    "Roost",
    "Served",
    "audit",
    "audit_database",
    "audit_path",
    "backup",
    "check_settings",
    "conductor_of",
    "database_of",
    "database_with",
    "exists",
    "import_placement",
    "notes_on",
    "open_in_process",
    "open_own",
    "open_placement",
    "open_product",
    "open_reader",
    "open_roost",
    "open_scratch",
    "open_stopped",
    "orphans",
    "placement_policy",
    "placement_served",
    "placement_settings",
    "restore",
    "serve_placement",
    "serve_product",
    "settings_of",
    "sourced_settings",
    "stamp",
    "sync",
    "unstored",
    "upgrade",
    "version_of",
]
