"""Settings: Roost's own sections. Rules declare theirs beside themselves, under Nova's names."""

import msgspec


class Scheduler(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[scheduler]``."""

    max_attempts: int = 3  # the chosen host and its alternates, >= 1
    claim_rounds: int = 3  # how often a request that lost every race is decided anew, >= 1

    def __post_init__(self) -> None:
        for name in ("max_attempts", "claim_rounds"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")


class FilterScheduler(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[filter_scheduler]``, the part that no single rule owns."""

    available_filters: tuple[str, ...] = ("nova.scheduler.filters.all_filters",)
    enabled_filters: tuple[str, ...] = (
        "ComputeFilter",
        "ComputeCapabilitiesFilter",
        "ImagePropertiesFilter",
        "ServerGroupAntiAffinityFilter",
        "ServerGroupAffinityFilter",
    )
    weight_classes: tuple[str, ...] = ("nova.scheduler.weights.all_weighers",)
    host_subset_size: int = 1
    shuffle_best_same_weighed_hosts: bool = False

    def __post_init__(self) -> None:
        if self.host_subset_size < 1:
            raise ValueError(f"host_subset_size must be 1 or more, got {self.host_subset_size}")


class Store(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[store]``."""

    url: str = ""  # postgresql://…, or empty: SQLite in the data folder
    synchronous: str = "FULL"  # SQLite: FULL is durable at each answer, NORMAL survives crashes of the process only
    group_max: int = 64  # items in one commit, >= 1
    evidence_keep_days: float = 7.0
    evidence_max_bytes: int = 4 * 2**30

    def __post_init__(self) -> None:
        if self.synchronous not in ("FULL", "NORMAL"):
            raise ValueError(f"synchronous must be FULL or NORMAL, got {self.synchronous!r}")
        if self.group_max < 1:
            raise ValueError(f"group_max must be 1 or more, got {self.group_max}")
        if self.evidence_keep_days < 0 or self.evidence_max_bytes < 0:
            raise ValueError("evidence_keep_days and evidence_max_bytes must be 0 or more")
