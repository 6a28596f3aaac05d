"""The composition root: chooses implementations by settings and environment. The entry point of the library.

``database_choice``: the settings of a command, and the database they select.
``product_factory``: opens the product for a server, a reader, an offline command or a trial.
``up``: serves the whole product on one port.
``placement_server``: serves the Placement API; merges server settings; imports another Placement.
``server_process``: what all servers share: store, deciding thread, serving loop.
``worker_process``: one of several processes of a server.
``conductor_thread``: the conductor and the periodic jobs, in one thread.
``conductor_process``: a conductor without a server.
``monitoring``: surveys for metrics, and the checks of a process.
``local_conductors``: a super conductor and the conductors of the cells, in this process.
``agents``: the agents of one or more hosts, in one process.
``preflight``: the check before ``roost nova-scheduler`` starts.
``reader_process``: answers slow questions beside the server, in forked children.
``remote_placement``: claims at a remote Placement, and follows its hosts.
``story_events``: publishes stories as events.
``reload``: reloads the settings of a running server.
``authenticator``: the authenticators that the settings select.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roost.app.database_choice import (
        audit_database,
        audit_path,
        check_settings,
        database_name,
        database_of,
        database_of_settings,
        nova_conf_notes,
        settings_of,
        settings_with_sources,
    )
    from roost.app.local_conductors import build_conductor
    from roost.app.placement_server import (
        ServerConfig,
        import_placement,
        open_in_process,
        open_placement,
        placement_policy,
        placement_settings,
        resolve_server_config,
        serve_placement,
    )
    from roost.app.preflight.nova_preflight import check_nova_deployment
    from roost.app.product_factory import open_ephemeral, open_offline, open_reader, open_roost, open_scratch
    from roost.app.reload import Reloader
    from roost.app.up import open_own_api, open_product, serve_product
    from roost.product import Roost
    from roost.store.audit import audit, orphans
    from roost.store.backends import exists, expand, stamp, status_of, sync, upgrade, version_of
    from roost.store.backup import backup, restore
    from roost.store.upkeep.upkeep_rows import record_upkeep

__all__ = [
    "Reloader",
    "Roost",
    "ServerConfig",
    "audit",
    "audit_database",
    "audit_path",
    "backup",
    "build_conductor",
    "check_nova_deployment",
    "check_settings",
    "database_name",
    "database_of",
    "database_of_settings",
    "exists",
    "expand",
    "import_placement",
    "nova_conf_notes",
    "open_ephemeral",
    "open_in_process",
    "open_offline",
    "open_own_api",
    "open_placement",
    "open_product",
    "open_reader",
    "open_roost",
    "open_scratch",
    "orphans",
    "placement_policy",
    "placement_settings",
    "record_upkeep",
    "resolve_server_config",
    "restore",
    "serve_placement",
    "serve_product",
    "settings_of",
    "settings_with_sources",
    "stamp",
    "status_of",
    "sync",
    "upgrade",
    "version_of",
]

# Agents and most commands need few of these modules. An import of all of them would delay the start of each command.
_HOMES = {
    "roost.app.database_choice": (
        "audit_database",
        "audit_path",
        "check_settings",
        "database_of",
        "database_of_settings",
        "nova_conf_notes",
        "settings_of",
        "settings_with_sources",
        "database_name",
    ),
    "roost.app.local_conductors": ("build_conductor",),
    "roost.app.preflight.nova_preflight": ("check_nova_deployment",),
    "roost.app.product_factory": (
        "open_ephemeral",
        "open_offline",
        "open_reader",
        "open_roost",
        "open_scratch",
    ),
    "roost.app.placement_server": (
        "ServerConfig",
        "import_placement",
        "open_in_process",
        "open_placement",
        "placement_policy",
        "placement_settings",
        "resolve_server_config",
        "serve_placement",
    ),
    "roost.app.reload": ("Reloader",),
    "roost.app.up": (
        "open_own_api",
        "open_product",
        "serve_product",
    ),
    "roost.product": ("Roost",),
    "roost.store.audit": (
        "audit",
        "orphans",
    ),
    "roost.store.backends": (
        "exists",
        "expand",
        "stamp",
        "status_of",
        "sync",
        "upgrade",
        "version_of",
    ),
    "roost.store.backup": (
        "backup",
        "restore",
    ),
    "roost.store.upkeep.upkeep_rows": ("record_upkeep",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a name on its first use."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(home), name)
    return found
