"""Operations: their permitted statuses, and the stored state of each kind between steps."""

from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

from roost.model.evidence.decision import Pick
from roost.model.names import uuid_text
from roost.model.request import Request
from roost.model.work.builds import Attempt
from roost.model.work.guest import TransferTarget, holder_of
from roost.model.work.guest_use import GuestNeeds
from roost.model.work.work_rows import StatusRow

Status = Literal["BUILD", "ACTIVE", "SHUTOFF", "VERIFY_RESIZE", "SHELVED", "SHELVED_OFFLOADED", "ERROR", "DELETED"]
# Operations that users request on an existing instance.
UserOperation = Literal[
    "delete",
    "start",
    "stop",
    "reboot",
    "resize",
    "confirm",
    "revert",
    "migrate",
    "live_migrate",
    "evacuate",
    "rebuild",
    "shelve",
    "offload",
    "unshelve",
    "reset",
]
# Further kinds. build: a request for instances; spawn: one instance of a build; drain: a host; apply: a plan; clean: a
# returning host; sync: an instance whose status differs from the report of its host.
Kind = Literal[UserOperation, "build", "spawn", "drain", "apply", "clean", "sync"]

# Maximum number of instances of a build.
INSTANCES_MAX = 1000
# Of several instances, the second and further ones have a number at the end of their name, within 255 characters.
NAME_MAX = 255 - len(f"-{INSTANCES_MAX}")
# Maximum number of instances of a drain or a plan that move at the same time.
AT_ONCE_MAX = 100
STATUSES: tuple[Status, ...] = get_args(Status)
USER_OPERATIONS: tuple[UserOperation, ...] = get_args(UserOperation)
_ALL_BUT_DELETED = frozenset(STATUSES) - {"DELETED"}
_ON_HOST = frozenset[Status]({"ACTIVE", "SHUTOFF"})
_FROM: Mapping[UserOperation, frozenset[Status]] = {
    "delete": _ALL_BUT_DELETED,
    "start": frozenset({"SHUTOFF"}),
    "stop": frozenset({"ACTIVE"}),
    "reboot": frozenset({"ACTIVE"}),
    "resize": _ON_HOST,
    "confirm": frozenset({"VERIFY_RESIZE"}),
    "revert": frozenset({"VERIFY_RESIZE"}),
    "migrate": _ON_HOST,
    "live_migrate": frozenset({"ACTIVE"}),
    "evacuate": _ON_HOST | {"ERROR"},
    "rebuild": _ON_HOST | {"ERROR"},
    "shelve": _ON_HOST,
    "offload": frozenset({"SHELVED"}),
    "unshelve": frozenset({"SHELVED", "SHELVED_OFFLOADED"}),
    "reset": frozenset({"ERROR"}),
}
# An instance in ERROR may have no host.
_NEED_HOST = frozenset[UserOperation]({"evacuate", "rebuild", "reset"})
# The operations on an instance whose guest another host holds. Others would leave this guest behind.
_WHILE_HELD = frozenset[UserOperation]({"delete", "reset"})
# Task of an instance during each operation.
TASKS: Mapping[str, str] = {
    "delete": "deleting",
    "start": "powering-on",
    "stop": "powering-off",
    "reboot": "rebooting",
    "resize": "resizing",
    "confirm": "confirming",
    "revert": "reverting",
    "migrate": "migrating",
    "live_migrate": "live-migrating",
    "evacuate": "evacuating",
    "rebuild": "rebuilding",
    "shelve": "shelving",
    "offload": "offloading",
    "unshelve": "unshelving",
    "reset": "resetting",
    "sync": "syncing",
}
# Tasks that read or write whole disks. A live migration copies memory instead.
IO_TASKS = frozenset(
    {
        "scheduling",
        "spawning",
        "resizing",
        "migrating",
        "evacuating",
        "rebuilding",
        "shelving",
        "unshelving",
    }
)
_WORDS: Mapping[UserOperation, str] = {"live_migrate": "live-migrate"}


def may_begin(kind: UserOperation, status: StatusRow) -> str:
    """Return the reason why an operation may not begin on an instance; empty: it may.

    An instance has at most one operation at a time. Only a delete may begin during
    another operation, and cancels it.
    """
    name = f"the instance {uuid_text(status.uuid)}"
    word = _WORDS.get(kind, kind)
    if status.status == "DELETED":
        return f"{name} is deleted"
    if status.operation_id and (kind != "delete" or status.task == "deleting"):
        return f"{name} cannot {word} now: its task is {status.task}"
    holder = holder_of(status.fault)
    if holder:
        return _refuse_held(kind, name, holder)
    if status.status not in _FROM[kind]:
        allowed = " or ".join(option for option in STATUSES if option in _FROM[kind])
        possible = ", ".join(_possible_words(status))
        return f"{name} cannot {word} in status {status.status}: it has to be in {allowed}; possible now: {possible}"
    if kind in _NEED_HOST and not status.host:
        return f"{name} cannot {word}: it is on no host"
    return ""


def _refuse_held(kind: UserOperation, name: str, holder: str) -> str:
    """Return why an operation may not begin on an instance whose guest another host holds; empty: it may."""
    if kind in _WHILE_HELD:
        return ""
    word = _WORDS.get(kind, kind)
    return f"{name} cannot {word}: its only guest is on {holder}, which is not its host; reset it, or delete it"


def _possible_words(status: StatusRow) -> list[str]:
    """Return the names of the operations that the status of an instance permits."""
    return [
        _WORDS.get(kind, kind)
        for kind in USER_OPERATIONS
        if status.status in _FROM[kind] and (status.host or kind not in _NEED_HOST)
    ]


class Build(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request for instances."""

    request: Request  # with the uuids of its instances
    decision_uuid: str
    sent: int = 0  # number of instances with an order to their cell
    problem: str = ""  # reason of failure; all kinds have this field


class InstanceBuild(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Build of one instance of a request."""

    request: Request  # without uuids
    name: str
    needs: GuestNeeds  # in addition to allocations; the limits come from the picks
    picks: tuple[Pick, ...]  # the current host, then the remaining alternates
    attempt: int  # number of the current attempt
    attempts: tuple[Attempt, ...] = ()  # ended attempts
    limit_at_s: float = 0.0  # deadline of the host
    lost: str = ""  # failure of this attempt, while the host cleans up
    is_unshelved: bool = False  # whether it is an unshelve; if it fails, the instance is shelved again
    image_id: int = 0  # of an unshelve: document of the original image; 0: none
    is_final: bool = False  # whether the current host is the last one to try
    problem: str = ""


class Delete(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Deletion of an instance."""

    is_forced: bool = False  # whether to skip waiting for its host
    again_at_s: float = 0.0  # time of the next order to a host that failed to destroy it; 0: none
    problem: str = ""


class PowerChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Start, stop, reboot, reset or sync of an instance: one order, without arguments."""

    limit_at_s: float = 0.0
    problem: str = ""


class InstanceMove(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Move of an instance to another host: resize, migration, live migration or evacuation."""

    request: Request  # for the scheduler, with ``move``
    decision_uuid: str
    migration_uuid: str
    is_on: bool  # whether it ran at the request
    is_verified: bool = False  # whether the move awaits confirmation
    name: str
    needs: GuestNeeds = GuestNeeds()  # in addition to allocations; the limits come from the picks
    picks: tuple[Pick, ...] = ()  # the target, then the remaining alternates
    attempt: int = 0  # number of the current attempt
    attempts: tuple[Attempt, ...] = ()  # ended attempts
    prepared: TransferTarget | None = None  # the target, after its preparation
    limit_at_s: float = 0.0  # deadline of a host
    lost: str = ""  # failure of this attempt, while hosts clean up
    problem: str = ""


class MoveSettlement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Confirmation or reversal of a move."""

    is_on: bool = False  # whether the instance runs, as reported by its host
    of: str = ""  # mark of the guest: uuid of the operation of the move
    is_lost: bool = False  # whether its host will not return, according to the request
    was_on: bool = True  # whether the instance ran before the move; used if its host cannot report
    # Whether the instance is already on its old host, because the new host is lost. A second migration then holds the
    # allocations on the lost host.
    is_apart: bool = False
    limit_at_s: float = 0.0  # deadline of a host
    problem: str = ""


class HostCleanup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Cleanup of a returning host: destroy guests that no longer belong to it, before it counts as up."""

    host: str  # as in ``AgentRow``
    fence: int  # of the registration
    guests: tuple[str, ...]  # uuids of the guests to check
    # Those whose last operation the database does not know, perhaps since it was restored.
    strangers: tuple[str, ...] = ()
    # Strangers whose home has a guest, each with the version of the status for which this is true.
    replaced: dict[str, int] = {}
    incomplete: tuple[str, ...] = ()  # strangers with an incomplete guest
    kept: tuple[str, ...] = ()  # those of them that stay, since their home has no guest or does not answer
    # Strangers that stay while an operation holds their instance, each with the version of the status meanwhile.
    deferred: dict[str, int] = {}
    limit_at_s: float = 0.0  # deadline of the homes of the other strangers
    after: int = 0  # highest order number at the registration; closed orders up to it do not count
    again_at_s: float = 0.0  # time to repeat the failed orders; 0: none
    problem: str = ""
