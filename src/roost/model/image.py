"""Images: what an instance boots from."""

import msgspec


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image as the scheduler sees it."""

    id: str | None = None
    disk_format: str | None = None
    properties: dict[str, str] = {}
