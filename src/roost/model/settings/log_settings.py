"""Settings of the log of servers, conductors and agents."""

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

Level = Literal["debug", "info", "warning", "error"]


class Log(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[log]``."""

    level: Annotated[str, Meta(description="Lowest level of the logged events: debug, info, warning or error.")] = (
        "info"
    )
    format: Annotated[
        str, Meta(description="Format of the lines: text, json, or auto: text on a terminal, otherwise json.")
    ] = "auto"
    repeat_s: Annotated[
        float, Meta(description="Seconds in which repetitions of a warning or error are only counted; 0: log each.")
    ] = 60.0

    def __post_init__(self) -> None:
        if self.level not in get_args(Level):
            raise ValueError(f"level must be debug, info, warning or error, got {self.level!r}")
        if self.format not in ("auto", "text", "json"):
            raise ValueError(f"format must be auto, text or json, got {self.format!r}")
        if not 0 <= self.repeat_s <= 86_400:
            raise ValueError(f"repeat_s must be 0 to 86400, got {self.repeat_s:g}")
