"""Forwards the log of plug-ins to Roost's log."""

import logging

from roost.observe import log

_MESSAGE_MAX = 2_000  # characters per message
_attached: set[str] = set()


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; if its message cannot be formatted, write the format."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            message = str(record.msg)
        fields = {"message": message[:_MESSAGE_MAX]}
        log.write("plugin_log", fields, level=log.level_of(record), logger=record.name)


def forward_log(module: str, level: str) -> None:
    """Forward the log of a module's package, at ``level`` and above, unless the program configured that logger."""
    package = module.partition(".")[0]
    logger = logging.getLogger(package)
    if package not in _attached:
        if package in ("roost", "__main__") or logger.level != logging.NOTSET or logger.hasHandlers():
            return
        _attached.add(package)
        logger.addHandler(_Lines())
    logger.setLevel(level)
