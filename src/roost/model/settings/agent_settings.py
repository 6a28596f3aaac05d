"""Settings of host agents: offered resources, updates, drivers and timeouts."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.names import AMOUNT_MAX, RATIO_MAX
from roost.model.work.agent_terms import HostTerms, ReshapeTerms
from roost.model.work.device_spec import DeviceSpec, read_device_specs

_Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
_Ratio = Annotated[float, Meta(ge=0, le=RATIO_MAX)]
_Seconds = Annotated[float, Meta(ge=0)]
_PERIODIC = ("die", "log")
_ABOVE_0 = (
    "initial_cpu_allocation_ratio",
    "initial_ram_allocation_ratio",
    "initial_disk_allocation_ratio",
    "update_retry_s",
    "driver_timeout_s",
)
_UNSET = "0: keep the ratio in Placement, or use the initial one."


class Agent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[agent]``."""

    servers: Annotated[
        tuple[str, ...],
        Meta(
            description="URLs of the servers, at most 16: the agent uses the first, and the next if one fails.",
            max_length=16,
        ),
    ] = ()
    reserved_host_cpus: Annotated[_Amount, Meta(description="Processors reserved for the host.")] = 0
    reserved_host_memory_mb: Annotated[_Amount, Meta(description="Memory reserved for the host, in MiB.")] = 512
    reserved_host_disk_mb: Annotated[_Amount, Meta(description="Disk reserved for the host, in MiB.")] = 0
    cpu_allocation_ratio: Annotated[_Ratio, Meta(description=f"Overcommit of VCPU; {_UNSET}")] = 0.0
    ram_allocation_ratio: Annotated[_Ratio, Meta(description=f"Overcommit of MEMORY_MB; {_UNSET}")] = 0.0
    disk_allocation_ratio: Annotated[_Ratio, Meta(description=f"Overcommit of DISK_GB; {_UNSET}")] = 0.0
    initial_cpu_allocation_ratio: Annotated[_Ratio, Meta(description="Overcommit of VCPU on a new host.")] = 4.0
    initial_ram_allocation_ratio: Annotated[_Ratio, Meta(description="Overcommit of MEMORY_MB on a new host.")] = 1.0
    initial_disk_allocation_ratio: Annotated[_Ratio, Meta(description="Overcommit of DISK_GB on a new host.")] = 1.0
    provider_config_location: Annotated[
        str, Meta(description="Folder of provider config files; it may be missing.")
    ] = "/etc/roost/provider_config"
    compute_monitors: Annotated[
        tuple[str, ...], Meta(description="Additional monitors; only cpu.virt_driver exists.")
    ] = ()
    pci_in_placement: Annotated[
        bool, Meta(description="Whether to report the host's PCI devices to Placement, one provider each.")
    ] = False
    device_spec: Annotated[
        tuple[str, ...],
        Meta(description="PCI devices to report, with their resource class and traits, as JSON objects; empty: all."),
    ] = ()
    my_ip: Annotated[
        str,
        Meta(description="Reported address of the host; empty: its address on the default route at the agent's start."),
    ] = ""
    rack: Annotated[str, Meta(description="Reported rack of the host; empty: unknown.")] = ""
    reshape_tries: Annotated[
        Annotated[int, Meta(ge=1, le=1000)],
        Meta(
            description="Upper bound of attempts at a reshape. Each concurrent change makes an attempt fail; after the "
            "last attempt, the start of the agent fails."
        ),
    ] = 4
    reshape_pause_s: Annotated[
        _Seconds,
        Meta(
            description="Pauses between attempts are random; "
            "their upper bound grows by this number of seconds each time."
        ),
    ] = 2.0
    periodic_reshape: Annotated[
        str,
        Meta(description="Reaction of a running agent to a necessary reshape: die (exit, for a restart) or log."),
    ] = "die"
    update_s: Annotated[_Seconds, Meta(description="Seconds between updates of a node; 0: only at the start.")] = 60.0
    resource_provider_association_refresh: Annotated[
        _Seconds,
        Meta(description="Seconds between refreshes of cached providers from Placement; 0: only after errors."),
    ] = 300.0
    sharing_providers_max_uuids_per_request: Annotated[
        Annotated[int, Meta(ge=1)],
        Meta(description="Upper bound of aggregates or traits in one request of an agent to Placement."),
    ] = 200
    update_retry_s: Annotated[float, Meta(description="Seconds until a failed update is retried.")] = 5.0
    driver_timeout_s: Annotated[
        float, Meta(description="Seconds for one action of a driver; after that, the order fails.")
    ] = 600.0
    sync_power_state_interval: Annotated[
        Annotated[float, Meta(ge=-1)],
        Meta(
            description="Seconds between reports of running guests, and between checks of saved images. 0 or -1: "
            "only after a reconnect, and after a failed, withdrawn or late order."
        ),
    ] = 600.0
    work_threads: Annotated[
        Annotated[int, Meta(ge=1, le=200)],
        Meta(description="Concurrent actions of drivers, for all agents of a process."),
    ] = 8
    stop_s: Annotated[_Seconds, Meta(description="Seconds that a stop waits for running actions.")] = 30.0

    def __post_init__(self) -> None:
        for name in _ABOVE_0:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0, got {getattr(self, name)}")
        if self.periodic_reshape not in _PERIODIC:
            raise ValueError(f"periodic_reshape must be die or log, got {self.periodic_reshape!r}")
        _ = self.device_specs  # Validates the entries.

    @property
    def device_specs(self) -> tuple[DeviceSpec, ...]:
        """The PCI devices to report to Placement; empty: all, or none without ``pci_in_placement``.

        Raises:
            ValueError: an entry is invalid.
        """
        if not self.pci_in_placement:
            return ()
        return tuple(spec for text in self.device_spec for spec in read_device_specs(text))

    @property
    def terms(self) -> HostTerms:
        """The terms of the host's inventory."""
        return HostTerms(**{name: getattr(self, name) for name in HostTerms.__struct_fields__})

    @property
    def reshape(self) -> ReshapeTerms:
        """The retry terms of reshapes."""
        return msgspec.convert({name: getattr(self, name) for name in ReshapeTerms.__struct_fields__}, ReshapeTerms)
