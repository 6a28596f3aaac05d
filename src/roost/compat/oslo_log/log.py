"""The part of ``oslo_log.log`` for plug-ins: loggers. Handlers and levels are Roost's."""

import logging
from collections.abc import MutableMapping
from typing import Any

CRITICAL, ERROR, WARNING, WARN, INFO, DEBUG = (
    logging.CRITICAL,
    logging.ERROR,
    logging.WARNING,
    logging.WARNING,
    logging.INFO,
    logging.DEBUG,
)
TRACE = 5  # below DEBUG, as in oslo.log


class KeywordArgumentAdapter(logging.LoggerAdapter[logging.Logger]):
    """A logger with keywords for the context, such as ``instance_uuid``; the uuid is put before the message."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Remove the keywords that Python's loggers do not have."""
        plain = {name: kwargs.pop(name) for name in ("exc_info", "stack_info", "stacklevel", "extra") if name in kwargs}
        context = {name: kwargs.pop(name) for name in list(kwargs)}
        uuid = context.get("instance_uuid") or getattr(context.get("instance"), "uuid", None)
        return (f"[instance: {uuid}] {msg}" if uuid else msg), plain

    def trace(self, msg: Any, *args: object, **kwargs: Any) -> None:
        """Log below DEBUG."""
        self.log(TRACE, msg, *args, **kwargs)

    warn = logging.LoggerAdapter.warning


def getLogger(name: str | None = None, project: str = "unknown", version: str = "unknown") -> KeywordArgumentAdapter:  # noqa: ARG001, N802  # Names of oslo.log.
    """Return the logger of a module."""
    return KeywordArgumentAdapter(logging.getLogger(name), {})


def register_options(_conf: object) -> None:
    """Do nothing: Roost has its own log settings."""


def setup(_conf: object, _product_name: str, _version: str = "unknown") -> None:
    """Do nothing: Roost sets up its logs itself."""
