"""Reloads the settings of a running server on request: all of them, or none if any is wrong."""

import signal
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from types import FrameType

import msgspec

from roost.app.database_choice import settings_with_sources
from roost.errors import BadSettings, first_line
from roost.model.settings.log_settings import Log
from roost.model.settings.roost_settings import Settings
from roost.observe import log
from roost.product import Roost

# Sections whose changes need a restart, since the database and sockets stay open.
_FIXED = ("store", "placement", "notifications", "nova")


class Reloader:
    """Reloads the settings of a running Roost, in the thread that uses it.

    A signal can arrive at any point, so its handler only requests a reload. The owner of the Roost calls
    ``reload_if_requested`` between two items of work.

    Args:
        roost: the product to reconfigure.
        config, environ: location of the settings; see ``roost.app.product_factory``.
        file_settings: the settings as read at the start; None: those of ``roost``.
    """

    def __init__(
        self, roost: Roost, *, config: Path | None, environ: Mapping[str, str], file_settings: Settings | None = None
    ) -> None:
        self._roost = roost
        self._file_settings = file_settings or roost.settings
        self._log_at_start = roost.settings.log
        self._config = config
        self._environ = environ
        self._requested = Event()

    def watch(self) -> None:
        """Install the handler of SIGHUP, which requests a reload. Call this method in the main thread."""
        signal.signal(signal.SIGHUP, self._on_signal)

    def request_reload(self) -> None:
        """Request a reload. Safe in any thread."""
        self._requested.set()

    @property
    def is_requested(self) -> bool:
        """Whether a reload is pending."""
        return self._requested.is_set()

    def reload_if_requested(self) -> bool:
        """Reload if requested; return whether the settings changed."""
        if not self._requested.is_set():
            return False
        self._requested.clear()
        return self.reload()

    def reload(self) -> bool:
        """Read the settings and apply them if they are valid; return whether they changed.

        Log ``settings_loaded``, ``settings_unchanged`` or ``settings_refused``.
        """
        before = self._roost.settings
        try:
            loaded = settings_with_sources(self._config, self._environ)
            fixed = {name: getattr(before, name) for name in _FIXED}
            settings = msgspec.structs.replace(loaded.settings, **fixed, log=self._merge_log(loaded.settings.log))
            if settings != before:
                self._roost.use(settings)
            log.configure(settings.log)
        except BadSettings as error:
            log.event("settings_refused", error=str(error))
            return False
        except OSError as error:
            log.event("settings_refused", error=first_line(error))
            return False
        restart_sections = [
            name for name in _FIXED if getattr(loaded.settings, name) != getattr(self._file_settings, name)
        ]
        if loaded.settings.conductor.in_server != self._file_settings.conductor.in_server:
            restart_sections.append("conductor.in_server")
        log.event(
            "settings_unchanged" if settings == before else "settings_loaded",
            fingerprint=settings.fingerprint().hex(),
            needs_restart=", ".join(restart_sections) or None,
            passed_over="; ".join(loaded.dropped) or None,
        )
        return settings != before

    def _merge_log(self, new: Log) -> Log:
        """Return new settings of the log; options of the command line keep their values."""
        at_start = self._log_at_start
        overrides = {
            name: getattr(at_start, name)
            for name in new.__struct_fields__
            if getattr(at_start, name) != getattr(self._file_settings.log, name)
        }
        return msgspec.structs.replace(new, **overrides)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.request_reload()
