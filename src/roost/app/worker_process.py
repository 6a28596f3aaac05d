"""The work of one of several server processes, and its configuration in a form that another version can read."""

from collections.abc import Callable, Mapping
from pathlib import Path
from socket import socket
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from roost.app.placement_server import ServerConfig, serve_placement
from roost.app.up import serve_product
from roost.model.settings.roost_settings import Settings

if TYPE_CHECKING:
    from roost.api.server.supervisor import ParentPipe

Work = Literal["up", "placement"]
_SERVE: Mapping[Work, Callable[..., None]] = MappingProxyType({"up": serve_product, "placement": serve_placement})


class _Packed(msgspec.Struct, kw_only=True):
    """A ``ServerConfig``, with values that msgpack knows."""

    url: str
    settings: Settings
    settings_file: str | None
    file_settings: Settings
    notes: tuple[str, ...]
    sources: list[tuple[str, str, str]]  # section, key, source


def pack(config: ServerConfig) -> bytes:
    """Return a configuration as bytes.

    A worker may run a newer version of Roost than its parent. Fields by name survive that, unlike a pickled object:
    settings that the parent does not know have their defaults.
    """
    path = config.settings_file
    return msgspec.msgpack.encode(
        _Packed(
            url=config.url,
            settings=config.settings,
            settings_file=None if path is None else str(path),
            file_settings=config.file_settings,
            notes=config.notes,
            sources=[(*name, source) for name, source in config.sources.items()],
        )
    )


def unpack(data: bytes) -> ServerConfig:
    """Return the configuration from ``pack``."""
    packed = msgspec.msgpack.decode(data, type=_Packed)
    return ServerConfig(
        url=packed.url,
        settings=_with_tuples(packed.settings),
        settings_file=None if packed.settings_file is None else Path(packed.settings_file),
        file_settings=_with_tuples(packed.file_settings),
        notes=packed.notes,
        sources={(section, key): source for section, key, source in packed.sources},
    )


def _with_tuples(settings: Settings) -> Settings:
    """Return settings whose options of rules have tuples again: msgpack knows only lists."""

    def convert(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(map(convert, value))
        return {key: convert(each) for key, each in value.items()} if isinstance(value, dict) else value

    return msgspec.structs.replace(settings, tables=convert(settings.tables))


def work(kind: Work, config: bytes, listener: socket, *, parent: "ParentPipe") -> None:
    """Serve in a worker process until the parent stops it.

    Args:
        kind: command of the server.
        config: its configuration, from ``pack``.
        listener: socket of all workers.
        parent: pipe to the parent.

    Raises:
        RoostError: the server cannot start.
    """
    _SERVE[kind](unpack(config), listener, parent=parent)
