"""Settings of operations on instances, mainly timeouts."""

from typing import Annotated

import msgspec
from msgspec import Meta


class Conductor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[conductor]``."""

    in_server: Annotated[
        bool,
        Meta(
            description="Whether servers run operations; if not, roost conductor does, which needs a database server."
        ),
    ] = True
    build_timeout_s: Annotated[
        float,
        Meta(description="Seconds for a host to build, rebuild, save, send or receive an instance."),
    ] = 600.0
    act_timeout_s: Annotated[float, Meta(description="Seconds for a host to carry out any other order.")] = 120.0
    owner_s: Annotated[
        float, Meta(description="Seconds until another conductor takes over the operations of a lost one.")
    ] = 30.0
    consecutive_build_service_disable_threshold: Annotated[
        int, Meta(description="Consecutive failed builds on a node that disable its service; 0: never.")
    ] = 10
    shelved_offload_time_s: Annotated[
        float,
        Meta(
            description="Seconds until a shelved instance leaves its host and releases its resources; 0: at once, -1: "
            "never."
        ),
    ] = 0.0

    def __post_init__(self) -> None:
        for name in ("build_timeout_s", "act_timeout_s", "owner_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0, got {getattr(self, name)}")
        if self.shelved_offload_time_s < 0 and self.shelved_offload_time_s != -1:
            raise ValueError(f"shelved_offload_time_s must be -1, 0 or more, got {self.shelved_offload_time_s}")
        if self.consecutive_build_service_disable_threshold < 0:
            value = self.consecutive_build_service_disable_threshold
            raise ValueError(f"consecutive_build_service_disable_threshold must be 0 or more, got {value}")
