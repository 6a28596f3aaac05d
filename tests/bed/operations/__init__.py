"""The operations of the scenario, in their order.

``boots``: servers, one after the other.
``groups``: server groups.
``moves``: resize, migration, shelving, rebuild and evacuation.
``upkeep``: the work of operators.
``crowds``: many servers at once, and the end.
"""

from collections.abc import Callable

from tests.bed.operations import boots, crowds, groups, moves, upkeep
from tests.bed.records import Outcome
from tests.bed.session import Session

Operation = Callable[[Session], dict[str, Outcome]]

OPERATIONS: dict[str, Operation] = {
    "providers at the start": boots.list_providers,
    "flavors": boots.create_flavors,
    "aggregates": boots.create_aggregates,
    "one server": boots.boot_one,
    "traits and classes of flavors": boots.boot_by_flavors,
    "forced hosts and zones": boots.boot_on_hosts,
    "no valid host": boots.refuse,
    "anti-affinity": groups.boot_apart,
    "affinity, several at once": groups.boot_together,
    "isolated aggregate": boots.boot_in_isolation,
    "resize, confirm, revert": moves.resize,
    "cold migration": moves.migrate,
    "live migration": moves.migrate_live,
    "shelve and unshelve": moves.shelve,
    "rebuild": moves.rebuild,
    "dedicated processors": boots.boot_dedicated,
    "disabled service": upkeep.disable_service,
    "evacuation": moves.evacuate,
    "quota": boots.count_quota,
    "audit": upkeep.audit,
    "heal_allocations": upkeep.heal,
    "sync_aggregates": upkeep.sync_aggregates,
    "the command openstack": upkeep.run_openstack,
    "servers at the end": boots.list_servers,
    "usages at the end": boots.sum_usages,
    "a class runs out": crowds.run_out,
    "30 servers at once": crowds.boot_crowd,
    "delete all": crowds.delete_all,
}
