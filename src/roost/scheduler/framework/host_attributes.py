"""Host values under the names of Nova's HostState attributes."""

from collections.abc import Callable

from roost.engine.columns.types import Scores
from roost.model.host import HostFacts
from roost.scheduler.framework.host_view import HostView

# Columns that change with each claim, and between the instances of one request.
DYNAMIC: dict[str, Callable[[HostView], Scores]] = {
    "vcpus_used": lambda hosts: hosts.column("vcpus_used"),
    "free_ram_mb": lambda hosts: hosts.column("free_ram_mb"),
    "free_disk_mb": lambda hosts: hosts.column("free_disk_mb"),
    "disk_mb_used": lambda hosts: hosts.column("used_disk_gb") * 1024,
    "num_instances": lambda hosts: hosts.column("num_instances"),
    "num_io_ops": lambda hosts: hosts.column("num_io_ops"),
}
# Columns that change only with facts and inventories.
STATIC: dict[str, Callable[[HostView], Scores]] = {
    "vcpus_total": lambda hosts: hosts.column("vcpus_total"),
    "total_usable_ram_mb": lambda hosts: hosts.column("total_usable_ram_mb"),
    "total_usable_disk_gb": lambda hosts: hosts.column("total_usable_disk_gb"),
    "failed_builds": lambda hosts: hosts.column("failed_builds"),
}
RATIOS: dict[str, Callable[[HostView], Scores]] = {
    "cpu_allocation_ratio": lambda hosts: hosts.column("cpu_allocation_ratio"),
    "ram_allocation_ratio": lambda hosts: hosts.allocation_ratio("MEMORY_MB"),
    "disk_allocation_ratio": lambda hosts: hosts.allocation_ratio("DISK_GB"),
}
# Facts reported by hosts; an empty value means unknown.
FACTS: dict[str, Callable[[HostFacts], object]] = {
    "hypervisor_type": lambda facts: facts.hypervisor_type or None,
    "hypervisor_version": lambda facts: facts.hypervisor_version or None,
    "host_ip": lambda facts: facts.host_ip or None,
    "cell_uuid": lambda facts: facts.cell or None,
    "cpu_info": lambda facts: facts.cpu_info or None,
    "supported_instances": lambda facts: [list(each) for each in facts.supported_instances],
    "stats": lambda facts: facts.stats,
}
# Read with methods of the view: a view of Nova's HostState objects (``roost.compat``) overrides them.
NAMES: dict[str, Callable[[HostView], list[str]]] = {
    "host": lambda hosts: hosts.names(),
    "nodename": lambda hosts: hosts.nodes(),
    "hypervisor_hostname": lambda hosts: hosts.nodes(),
    "uuid": lambda hosts: hosts.uuids(),
}


def is_attribute(name: str) -> bool:
    """Return whether hosts have an attribute of this name."""
    return any(name in table for table in (DYNAMIC, STATIC, RATIOS, FACTS, NAMES))
