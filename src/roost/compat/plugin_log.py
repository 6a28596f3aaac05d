"""The log lines of plug-ins, as lines of Roost's log."""

import logging

from roost.observe import log

_MESSAGE_MAX = 2_000  # letters of one message
_attached: set[str] = set()


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; one whose message cannot be made is written as its format."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            message = str(record.msg)
        log.event("plugin_log", logger=record.name, level=record.levelname, message=message[:_MESSAGE_MAX])


def listen(module: str, level: str) -> None:
    """Write what the package of a module logs from a level on, unless the program has set up that logger itself."""
    package = module.partition(".")[0]
    logger = logging.getLogger(package)
    if package not in _attached:
        if package in ("roost", "__main__") or logger.level != logging.NOTSET or logger.hasHandlers():
            return
        _attached.add(package)
        logger.addHandler(_Lines())
    logger.setLevel(level)
