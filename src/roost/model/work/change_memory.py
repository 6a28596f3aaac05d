"""Stored state of operations that rebuild, shelve or unshelve instances, drain hosts, or apply plans."""

from typing import Literal

import msgspec

from roost.model.image import Image
from roost.model.request import Request


class InstanceRebuild(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rebuild of an instance's disk from an image."""

    request: Request  # for the instance after the rebuild
    image_id: int  # document, like request_id
    request_id: int
    is_on: bool  # whether to start it afterwards
    limit_at_s: float = 0.0  # deadline of the host
    problem: str = ""


class Shelve(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Shelving of an instance: save its disk, stop it, and possibly remove it from its host."""

    image: Image  # source of its disk
    is_on: bool  # whether it ran at the request
    is_saved: bool = True  # whether to save its disk; False for a volume
    limit_at_s: float = 0.0
    lost: str = ""  # problem of the failed save, while the instance is started again
    problem: str = ""


class Unshelve(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Unshelving of an instance, on its host or on a new one."""

    request: Request  # for the scheduler
    image: Image  # the saved disk
    image_id: int  # document of its original image; 0: none
    decision_uuid: str  # predetermined uuid of the decision
    limit_at_s: float = 0.0
    problem: str = ""


class Drain(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Drain of a host."""

    host: str  # the service
    instances: tuple[str, ...]  # uuids of its instances at the start
    at_once: int  # upper bound of concurrent moves
    begun: int = 0  # number of instances handled so far
    going: tuple[str, ...] = ()  # moving instances
    stayed: int = 0  # number of failed moves
    is_paused: bool = False  # whether no further moves begin
    problem: str = ""


MoveState = Literal["waiting", "moving", "done", "failed", "skipped"]


class AppliedMove(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A move of a plan that is carried out."""

    number: int  # in the plan
    instance: str  # uuid
    source: str  # service
    target: str = ""  # service; empty: the instance is offloaded
    after: tuple[int, ...] = ()  # numbers of earlier moves that must be done first
    group: str = ""  # uuid of its server group; empty: none
    state: MoveState = "waiting"
    problem: str = ""  # why it failed or was skipped


class PlanApplication(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The moves of a plan, and the limits of concurrent ones."""

    moves: tuple[AppliedMove, ...]  # in the order of their start
    at_once: int
    per_host: int  # of the moves to or from one service
    per_group: int  # of the moves in one server group
    deadline_at_s: float = 0.0  # no move begins from this time on; 0: no deadline
    windows: tuple[str, ...] = ()  # moves begin only within one of them; see ``move_windows``
    opens_at_s: float = 0.0  # no move begins before the next window at this time; 0: moves may begin
    problem: str = ""
