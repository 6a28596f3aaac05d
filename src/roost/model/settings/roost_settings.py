"""Settings: Roost's own sections. Each rule declares its own settings, under Nova's names."""

import hashlib
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from roost.model.devices.pci import check_aliases
from roost.model.settings.agent_settings import Agent
from roost.model.settings.conductor_settings import Conductor
from roost.model.settings.log_settings import Log
from roost.model.settings.monitoring_settings import Monitoring
from roost.model.settings.notification_settings import Notifications
from roost.model.settings.nova_settings import Nova
from roost.model.settings.number_bounds import require_bounds
from roost.model.settings.placement_settings import Placement


class Default(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[DEFAULT]``, without the settings of rules."""

    default_availability_zone: Annotated[
        str, Meta(description="Zone of hosts without an availability zone in their aggregates.")
    ] = "nova"

    def __post_init__(self) -> None:
        if not self.default_availability_zone:
            raise ValueError("default_availability_zone must not be empty")


class Scheduler(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[scheduler]``."""

    driver: Annotated[
        str,
        Meta(description="filter: by rules; chance: any host that is up; caching: by rules, on cached data."),
    ] = "filter"
    periodic_task_interval: Annotated[
        float, Meta(description="Driver caching: seconds between reads of other processes' changes.")
    ] = 60.0
    plugin_timeout_s: Annotated[
        float, Meta(description="Seconds for a third-party rule to judge all hosts; 0: no limit.")
    ] = 10.0
    search_budget_s: Annotated[
        float, Meta(description="Seconds for a decision to search provider trees for candidates, else 503.")
    ] = 0.5
    plugin_failure: Annotated[
        str, Meta(description="What to refuse if a third-party rule fails: the request, or the host.")
    ] = "request"
    plugin_log_level: Annotated[
        str, Meta(description="Lowest log level of plug-ins: DEBUG, INFO, WARNING or ERROR.")
    ] = "INFO"
    max_attempts: Annotated[
        int, Meta(description="Hosts to try for an instance: the chosen one and its alternates.")
    ] = 3
    claim_rounds: Annotated[
        int,
        Meta(
            description="A request that has lost 32 times this number of races to other processes ends with a conflict."
        ),
    ] = 3
    partition: Annotated[
        str,
        Meta(
            description="Whether each of several processes on one database prefers a part of the fleet of its own: "
            "auto or off."
        ),
    ] = "auto"
    max_placement_results: Annotated[
        int, Meta(description="Upper bound of candidates requested from a remote Placement.")
    ] = 1000
    limit_tenants_to_placement_aggregate: Annotated[
        bool,
        Meta(
            description="Whether a project that is named in the metadata of aggregates may use only the hosts of these "
            "aggregates."
        ),
    ] = False
    placement_aggregate_required_for_tenants: Annotated[
        bool,
        Meta(description="Whether limit_tenants_to_placement_aggregate also refuses projects without an aggregate."),
    ] = False
    query_placement_for_image_type_support: Annotated[
        bool, Meta(description="Whether hosts must have the trait of the image's disk format.")
    ] = False
    enable_isolated_aggregate_filtering: Annotated[
        bool, Meta(description="Whether aggregates with required traits accept only requests for these traits.")
    ] = False
    image_metadata_prefilter: Annotated[
        bool, Meta(description="Whether hosts must have the traits of the image's devices and architecture.")
    ] = False
    query_placement_for_routed_network_aggregates: Annotated[
        bool, Meta(description="Whether hosts must be in the aggregates of the networks' segments.")
    ] = False

    def __post_init__(self) -> None:
        for name in ("max_attempts", "claim_rounds", "max_placement_results"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")
        for name in ("periodic_task_interval", "plugin_timeout_s"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)}")
        if self.search_budget_s <= 0:
            raise ValueError(f"search_budget_s must be more than 0, got {self.search_budget_s}")
        if self.driver not in ("filter", "chance", "caching"):
            raise ValueError(f"driver must be filter, chance or caching, got {self.driver!r}")
        if self.partition not in ("auto", "off"):
            raise ValueError(f"partition must be auto or off, got {self.partition!r}")
        if self.plugin_failure not in ("request", "host"):
            raise ValueError(f"plugin_failure must be request or host, got {self.plugin_failure!r}")
        if self.plugin_log_level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
            raise ValueError(f"plugin_log_level must be DEBUG, INFO, WARNING or ERROR, got {self.plugin_log_level!r}")


class Workarounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[workarounds]``."""

    disable_fallback_pcpu_query: Annotated[
        bool, Meta(description="Whether to keep instances with pinned CPUs off hosts that offer only VCPU.")
    ] = False


class Compute(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[compute]``."""

    packing_host_numa_cells_allocation_strategy: Annotated[
        bool,
        Meta(description="Whether to use the NUMA cells with the least free resources first, instead of the most."),
    ] = False


class FilterScheduler(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[filter_scheduler]``, without the settings of rules."""

    available_filters: Annotated[
        tuple[str, ...],
        Meta(description="Available filters: dotted paths of classes, or of functions that return classes."),
    ] = ("nova.scheduler.filters.all_filters",)
    enabled_filters: Annotated[
        tuple[str, ...], Meta(description="Enabled filters, in order: Roost's names, or class names.")
    ] = (
        "ComputeFilter",
        "ComputeCapabilitiesFilter",
        "ImagePropertiesFilter",
        "ServerGroupAntiAffinityFilter",
        "ServerGroupAffinityFilter",
    )
    weight_classes: Annotated[
        tuple[str, ...],
        Meta(
            description="Enabled weighers: Roost's names, or dotted paths of classes, or of functions that return "
            "classes."
        ),
    ] = ("nova.scheduler.weights.all_weighers",)
    host_subset_size: Annotated[
        int, Meta(description="Number of best hosts to choose from at random; 1: always the best.")
    ] = 1
    shuffle_best_same_weighed_hosts: Annotated[
        bool, Meta(description="Whether hosts with the best weight get a random order before the choice.")
    ] = False
    pci_in_placement: Annotated[
        bool, Meta(description="Whether to request the PCI devices of flavors from Placement, one resource group each.")
    ] = False

    def __post_init__(self) -> None:
        if self.host_subset_size < 1:
            raise ValueError(f"host_subset_size must be 1 or more, got {self.host_subset_size}")


class Pci(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[pci]``."""

    alias: Annotated[
        tuple[str, ...],
        Meta(description="Aliases of PCI devices for flavors, as JSON objects; see pci_passthrough."),
    ] = ()

    def __post_init__(self) -> None:
        check_aliases(self.alias)


_STORE_BOUNDS_S = {"deadline_s": (0.1, 600), "bulk_deadline_s": (1, 86_400), "wait_s": (0, 60)}


class Store(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[store]``."""

    url: Annotated[
        str, Meta(description="Address of a PostgreSQL or MariaDB database; empty: SQLite in the data folder.")
    ] = ""
    synchronous: Annotated[
        str,
        Meta(
            description="SQLite: FULL is durable at each response, NORMAL survives only crashes of the process.",
        ),
    ] = "FULL"
    group_max: Annotated[int, Meta(description="Upper bound of items in one commit.")] = 64
    evidence_keep_days: Annotated[
        float, Meta(description="Days to keep decisions, the feed of changes and finished work.")
    ] = 7.0
    evidence_max_bytes: Annotated[
        int, Meta(description="Upper bound in bytes of decisions, the feed of changes and snapshots together.")
    ] = 4 * 2**30
    changes_keep_days: Annotated[float, Meta(description="Days to keep the records of changes by clients.")] = 90.0
    changes_max: Annotated[
        int, Meta(description="Approximate maximum number of records of changes; beyond it, the oldest are deleted.")
    ] = 500_000
    history_days: Annotated[float, Meta(description="Days to keep the history of the fleet; 0: write none.")] = 30.0
    history_max_bytes: Annotated[
        int, Meta(description="Upper bound of the history of the fleet in bytes; beyond it, the oldest is deleted.")
    ] = 64 * 2**20
    snapshot_every_bytes: Annotated[
        int,
        Meta(
            description="Approximate bytes of the feed between snapshots of the state; 0: no snapshots.",
        ),
    ] = 64 * 2**20
    column_file: Annotated[
        bool,
        Meta(description="Whether to keep a column file: a copy of the fleet from which a process starts faster."),
    ] = True
    column_folder: Annotated[
        str,
        Meta(
            description="Folder of the column file. Empty: beside a SQLite file; for PostgreSQL and MariaDB, no file.",
        ),
    ] = ""
    deadline_s: Annotated[
        float, Meta(description="Database server: seconds without a reply until a statement counts as lost.")
    ] = 10.0
    bulk_deadline_s: Annotated[
        float, Meta(description="Database server: deadline_s for reads, writes and upgrades of a whole database.")
    ] = 60.0
    wait_s: Annotated[
        float, Meta(description="Database server: seconds that requests wait for a lost connection to return.")
    ] = 5.0
    pooler: Annotated[
        str, Meta(description="PostgreSQL: session if the URL is that of a session pooler, else none.")
    ] = "none"

    def __post_init__(self) -> None:
        if self.synchronous not in ("FULL", "NORMAL"):
            raise ValueError(f"synchronous must be FULL or NORMAL, got {self.synchronous!r}")
        if self.group_max < 1:
            raise ValueError(f"group_max must be 1 or more, got {self.group_max}")
        for name in (
            "evidence_keep_days",
            "evidence_max_bytes",
            "changes_keep_days",
            "changes_max",
            "history_days",
            "history_max_bytes",
            "snapshot_every_bytes",
        ):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)}")
        if self.pooler not in ("none", "session"):
            raise ValueError(f"pooler must be none or session, got {self.pooler!r}: pools by transaction do not work")
        require_bounds(self, _STORE_BOUNDS_S)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a process, every value filled in."""

    default: Default = msgspec.field(name="DEFAULT", default=Default())
    scheduler: Scheduler = Scheduler()
    filter_scheduler: FilterScheduler = FilterScheduler()
    workarounds: Workarounds = Workarounds()
    compute: Compute = Compute()
    pci: Pci = Pci()
    store: Store = Store()
    conductor: Conductor = Conductor()
    placement: Placement = Placement()
    notifications: Notifications = Notifications()
    monitoring: Monitoring = Monitoring()
    nova: Nova = Nova()
    agent: Agent = Agent()
    log: Log = Log()
    tables: dict[str, dict[str, Any]] = {}  # options of rules: section -> key -> value

    def body(self) -> bytes:
        """Return the settings that affect decisions, as JSON with sorted keys: equal settings, equal bytes.

        The body excludes the store, because it affects no decision and its URL may contain a password. The body also
        excludes the settings of servers and agents.
        """
        return msgspec.json.encode(
            {
                "DEFAULT": self.default,
                "scheduler": self.scheduler,
                "filter_scheduler": self.filter_scheduler,
                "workarounds": self.workarounds,
                "compute": self.compute,
                "pci": self.pci,
                "tables": self.tables,
            },
            order="sorted",
        )

    def fingerprint(self) -> bytes:
        """Return a hash of ``body``, 16 bytes."""
        return hashlib.blake2b(self.body(), digest_size=16).digest()
