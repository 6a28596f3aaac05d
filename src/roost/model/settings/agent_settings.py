"""Settings of the agents of hosts: on which terms they offer what a host has, and how they go about their work."""

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
_UNSET = "0: as Placement has it, or the initial one."


class Agent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[agent]``."""

    reserved_host_cpus: Annotated[_Amount, Meta(description="Processors that no instance may have.")] = 0
    reserved_host_memory_mb: Annotated[_Amount, Meta(description="MiB of memory that no instance may have.")] = 512
    reserved_host_disk_mb: Annotated[_Amount, Meta(description="MiB of disk that no instance may have.")] = 0
    cpu_allocation_ratio: Annotated[_Ratio, Meta(description=f"Overcommit of VCPU; {_UNSET}")] = 0.0
    ram_allocation_ratio: Annotated[_Ratio, Meta(description=f"Overcommit of MEMORY_MB; {_UNSET}")] = 0.0
    disk_allocation_ratio: Annotated[_Ratio, Meta(description=f"Overcommit of DISK_GB; {_UNSET}")] = 0.0
    initial_cpu_allocation_ratio: Annotated[_Ratio, Meta(description="Overcommit of VCPU on a new host.")] = 4.0
    initial_ram_allocation_ratio: Annotated[_Ratio, Meta(description="Overcommit of MEMORY_MB on a new host.")] = 1.0
    initial_disk_allocation_ratio: Annotated[_Ratio, Meta(description="Overcommit of DISK_GB on a new host.")] = 1.0
    provider_config_location: Annotated[
        str, Meta(description="Folder of provider config files; one that is not there holds none.")
    ] = "/etc/roost/provider_config"
    compute_monitors: Annotated[
        tuple[str, ...], Meta(description="What is measured besides; cpu.virt_driver is what there is.")
    ] = ()
    pci_in_placement: Annotated[
        bool, Meta(description="Whether Placement counts the PCI devices of the host, on a provider each.")
    ] = False
    device_spec: Annotated[
        tuple[str, ...],
        Meta(description="Which devices Placement counts, and as what, each a JSON object; none: all."),
    ] = ()
    my_ip: Annotated[
        str,
        Meta(
            description="Address of the host that the agent reports; empty: the one on its default route, found when "
            "the agent starts."
        ),
    ] = ""
    rack: Annotated[str, Meta(description="Rack of the host that the agent reports; empty: not known.")] = ""
    reshape_tries: Annotated[
        Annotated[int, Meta(ge=1, le=1000)],
        Meta(description="How often an update is tried that others come before; then a start gives up."),
    ] = 4
    reshape_pause_s: Annotated[
        _Seconds,
        Meta(description="Seconds by which the longest pause grows from try to try; each is a random part of it."),
    ] = 2.0
    periodic_reshape: Annotated[
        str,
        Meta(description="What an agent does that finds out only while it runs: die, so that it starts anew; or log."),
    ] = "die"
    update_s: Annotated[
        _Seconds, Meta(description="Seconds from one update of a node to the next; 0: only at the start.")
    ] = 60.0
    resource_provider_association_refresh: Annotated[
        _Seconds,
        Meta(
            description="Seconds after which an agent reads again what Placement has of its providers; 0: only after "
            "an error."
        ),
    ] = 300.0
    sharing_providers_max_uuids_per_request: Annotated[
        Annotated[int, Meta(ge=1)],
        Meta(description="Aggregates, or traits, that one question of an agent to Placement names at most."),
    ] = 200
    update_retry_s: Annotated[float, Meta(description="Seconds until an update that failed is tried again.")] = 5.0
    driver_timeout_s: Annotated[
        float, Meta(description="Seconds that a driver may take for one act before the order has failed.")
    ] = 600.0
    sync_power_state_interval: Annotated[
        Annotated[float, Meta(ge=-1)],
        Meta(
            description="Seconds after which an agent says again which guests run, and looks at saved images again; "
            "0 or -1: only when it is back, or a guest may be otherwise than was ordered."
        ),
    ] = 600.0
    work_threads: Annotated[
        Annotated[int, Meta(ge=1, le=200)],
        Meta(description="Acts of drivers at the same time, of all agents of a process."),
    ] = 8
    stop_s: Annotated[_Seconds, Meta(description="Seconds for which the end waits for what is begun.")] = 30.0

    def __post_init__(self) -> None:
        for name in _ABOVE_0:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0, got {getattr(self, name)}")
        if self.periodic_reshape not in _PERIODIC:
            raise ValueError(f"periodic_reshape must be die or log, got {self.periodic_reshape!r}")
        _ = self.device_specs  # Which sees that each says some.

    @property
    def device_specs(self) -> tuple[DeviceSpec, ...]:
        """Which PCI devices Placement counts, and as what; none: all, or it counts none at all.

        Raises:
            ValueError: an entry says none.
        """
        if not self.pci_in_placement:
            return ()
        return tuple(spec for text in self.device_spec for spec in read_device_specs(text))

    @property
    def terms(self) -> HostTerms:
        """The terms on which a host offers what it has."""
        return HostTerms(**{name: getattr(self, name) for name in HostTerms.__struct_fields__})

    @property
    def reshape(self) -> ReshapeTerms:
        """How what moves from provider to provider comes to Placement."""
        return msgspec.convert({name: getattr(self, name) for name in ReshapeTerms.__struct_fields__}, ReshapeTerms)
