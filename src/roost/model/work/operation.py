"""Operations: what may be asked of an instance when, and what each kind remembers between two steps."""

from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

from roost.model.evidence.decision import Pick
from roost.model.names import uuid_text
from roost.model.request import Request
from roost.model.work.builds import Attempt
from roost.model.work.guest import Prepared
from roost.model.work.guest_use import GuestNeeds
from roost.model.work.work_rows import StatusRow

Status = Literal["BUILD", "ACTIVE", "SHUTOFF", "VERIFY_RESIZE", "SHELVED", "SHELVED_OFFLOADED", "ERROR", "DELETED"]
# What is asked of one instance that is there.
Asked = Literal[
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
# Beside these: a request for instances, one of its instances, a host that is to be left, a host that comes back, and
# an instance of which its host says something else than its status.
Kind = Literal[Asked, "build", "spawn", "drain", "clean", "sync"]

STATUSES: tuple[Status, ...] = get_args(Status)
ASKED: tuple[Asked, ...] = get_args(Asked)
_ALL_BUT_DELETED = frozenset(STATUSES) - {"DELETED"}
_ON_HOST = frozenset[Status]({"ACTIVE", "SHUTOFF"})
_FROM: Mapping[Asked, frozenset[Status]] = {
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
# In ERROR an instance may be nowhere.
_NEED_HOST = frozenset[Asked]({"evacuate", "rebuild", "reset"})
# What a status says of an instance while somebody works on it.
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
# Tasks that read or write whole disks. To live-migrate copies memory.
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
_WORDS: Mapping[Asked, str] = {"live_migrate": "live-migrate"}


def may_begin(kind: Asked, status: StatusRow) -> str:
    """Say why an operation may not begin on an instance as it is; empty: it may.

    One operation at a time works on an instance. Only a delete may be asked for meanwhile: it lets the other one end.
    """
    name = f"the instance {uuid_text(status.uuid)}"
    word = _WORDS.get(kind, kind)
    if status.status == "DELETED":
        return f"{name} is deleted"
    if status.operation_id and (kind != "delete" or status.task == "deleting"):
        return f"{name} cannot {word} now: its task is {status.task}"
    if status.status not in _FROM[kind]:
        wanted = " or ".join(each for each in STATUSES if each in _FROM[kind])
        return f"{name} cannot {word} in status {status.status}: it has to be in {wanted}"
    if kind in _NEED_HOST and not status.host:
        return f"{name} cannot {word}: it is on no host"
    return ""


class Build(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request for instances."""

    request: Request  # with the uuids of its instances
    decision_uuid: str
    sent: int = 0  # of its instances so many were told where they go
    problem: str = ""  # why it failed; so for all kinds


class Spawning(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of the instances of a request."""

    request: Request  # without uuids
    name: str
    needs: GuestNeeds  # beside amounts; limits are those of the picks
    picks: tuple[Pick, ...]  # the host that it is on, then the alternates left
    attempt: int  # the number of this one
    attempts: tuple[Attempt, ...] = ()  # those that are over
    limit_at_s: float = 0.0  # until then the host may take its time
    lost: str = ""  # how this attempt failed, while the host clears up
    is_unshelved: bool = False  # whether it was shelved, and is so again where no host could build it
    image_id: int = 0  # the document of what such an instance was built from at first; 0: there is none
    is_final: bool = False  # whether no other host is tried after that
    problem: str = ""


class Delete(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of an instance."""

    is_forced: bool = False  # whether nobody waits for its host
    again_at_s: float = 0.0  # when a host is asked once more that could not get rid of it; 0: there is none
    problem: str = ""


class Powering(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An instance starts, or stops."""

    limit_at_s: float = 0.0
    problem: str = ""


class Moving(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An instance goes to another host: resized, migrated, live or not, or evacuated."""

    request: Request  # as the scheduler is asked, with ``move``
    decision_uuid: str
    migration_uuid: str
    is_on: bool  # whether it ran when it was asked
    is_verified: bool = False  # whether it waits on its new host to be confirmed
    name: str
    needs: GuestNeeds = GuestNeeds()  # beside amounts; limits are those of the picks
    picks: tuple[Pick, ...] = ()  # the host that it goes to, then the alternates left
    attempt: int = 0  # the number of this one
    attempts: tuple[Attempt, ...] = ()  # those that are over
    prepared: Prepared | None = None  # where it is to arrive
    limit_at_s: float = 0.0  # until then a host may take its time
    lost: str = ""  # how this attempt failed, while hosts clear up
    problem: str = ""


class Settling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A move is confirmed, or reverted."""

    is_on: bool = False  # whether the instance runs, as its host says
    of: str = ""  # the mark of the guest there: uuid of the operation that moved it
    is_lost: bool = False  # whether its host does not come back, as whoever asked says
    was_on: bool = True  # whether it ran when it was moved, where its host cannot say whether it runs
    is_apart: bool = False  # whether it is on its old host already, and what its lost host has is another migration's
    limit_at_s: float = 0.0  # until then a host may take its time
    problem: str = ""


class Cleaning(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A host that comes back gets rid of what is not its own any more, before it counts as up."""

    host: str  # as in ``AgentRow``
    fence: int  # of the registration
    guests: tuple[str, ...]  # uuids of the instances that may have to go
    after: int = 0  # orders with numbers up to this one were of an earlier registration of the same run
    again_at_s: float = 0.0  # when those are asked for once more that it could not get rid of; 0: there are none
    problem: str = ""
