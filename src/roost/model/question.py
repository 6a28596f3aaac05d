"""Messages between a server and its reader process: frames of MessagePack on a socket."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.settings.roost_settings import Settings

FRAME_HEAD = 8  # bytes; the head precedes each frame, and is the frame's length, big-endian
FRAME_MAX = 2**30  # bytes


class Start(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first frame: the database, and the settings."""

    url: str
    settings: Settings
    has_own_api: bool  # whether to serve /v1 beside the Placement API


class NewSettings(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The settings for all ``Ask`` messages after this frame."""

    settings: Settings


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """The identity behind a question; fields as in ``roost.api.http.Identity``."""

    user_id: str
    project_id: str
    roles: frozenset[str]
    is_system_scoped: bool
    hosts: frozenset[str]


class Ask(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One request, already authenticated; fields as in ``roost.api.http.Request``."""

    number: int
    is_own_api: bool
    budget_s: Annotated[float, Meta(gt=0)]
    method: str
    path: str
    query_string: str
    headers: dict[str, str]
    body: bytes
    prefix: str
    host_url: str
    request_id: str
    asker: Asker


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The client of a question has disconnected."""

    number: int


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The response to a question."""

    number: int
    status: int
    headers: dict[str, str]
    body: bytes


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The failure of a question or, with number 0, of the reader's start."""

    number: int
    problem: str  # a sentence
    is_over_budget: bool = False


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The reader has loaded the columns."""


ToReader = Start | NewSettings | Ask | Cancel
FromReader = Answer | Failure | Ready
