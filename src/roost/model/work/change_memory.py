"""What operations remember that let an instance stay where it is, or leave its host and come back later."""

import msgspec

from roost.model.image import Image
from roost.model.request import Request


class Rebuilding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An instance gets the disk of an image anew."""

    request: Request  # that would build it as it is to be
    image_id: int  # documents of that, so for the request
    request_id: int
    is_on: bool  # whether it runs afterwards
    limit_at_s: float = 0.0  # until then its host may take its time
    problem: str = ""


class Shelve(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The disk of an instance is saved, and the instance does not run any more; it may leave its host, too."""

    image: Image  # that it was built from
    is_on: bool  # whether it ran when it was asked
    is_saved: bool = True  # whether its disk has to be; not so where that is a volume
    limit_at_s: float = 0.0
    lost: str = ""  # what went wrong, while it is started again
    problem: str = ""


class Unshelve(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An instance that was shelved runs again: where it is, or on a host that is chosen for it."""

    request: Request  # as the scheduler is asked
    image: Image  # that its disk was saved as
    image_id: int  # the document of the image that it was built from; 0: there is none
    decision_uuid: str  # that a decision about it is to have
    limit_at_s: float = 0.0
    problem: str = ""


class Drain(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A host that is to be left by its instances."""

    host: str  # the service
    instances: tuple[str, ...]  # uuids of those that were there
    at_once: int  # so many are on their way together
    begun: int = 0  # so many of the instances were looked at
    going: tuple[str, ...] = ()  # those on their way
    stayed: int = 0  # those that could not be moved
    problem: str = ""
