"""Flavors: sizes of instances."""

import msgspec


class Flavor(msgspec.Struct, frozen=True, kw_only=True):
    """A size of instance, with Nova's names and units."""

    name: str
    vcpus: int = 0
    memory_mb: int = 0  # MiB
    root_gb: int = 0  # GiB
    ephemeral_gb: int = 0  # GiB
    swap: int = 0  # MiB
    extra_specs: dict[str, str] = {}

    def __post_init__(self) -> None:
        for name in ("vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap"):
            if not 0 <= getattr(self, name) <= 2**31 - 1:
                raise ValueError(f"{name} must be 0..{2**31 - 1}, got {getattr(self, name)}")
