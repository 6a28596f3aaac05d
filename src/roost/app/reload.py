"""Settings that change while a server runs: read anew when somebody says so, taken as a whole or not at all."""

import signal
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from types import FrameType

import msgspec

from roost.app.database_choice import settings_with_sources
from roost.errors import BadSettings, first_line
from roost.model.settings.roost_settings import Settings
from roost.observe import log
from roost.product import Roost

# What is read at the start alone: an open database and open sockets stay as they are.
_FIXED = ("store", "placement", "notifications")


class Reloader:
    """Reads the settings of a running Roost anew, in the thread that uses it.

    A signal only asks for it, since it arrives in the middle of anything; whoever owns the Roost calls
    ``reload_if_asked`` between two acts.

    Args:
        roost: whose settings these are.
        config, environ: where the settings are; see ``roost.app.open_roost``.
        file_settings: the settings as they were read there at the start; None: those of ``roost``.
    """

    def __init__(
        self, roost: Roost, *, config: Path | None, environ: Mapping[str, str], file_settings: Settings | None = None
    ) -> None:
        self._roost = roost
        self._file_settings = file_settings or roost.settings
        self._config = config
        self._environ = environ
        self._requested = Event()

    def watch(self) -> None:
        """Let SIGHUP ask; to be called in the main thread."""
        signal.signal(signal.SIGHUP, self._on_signal)

    def request_reload(self) -> None:
        """Ask that the settings be read anew; safe in any thread."""
        self._requested.set()

    @property
    def is_requested(self) -> bool:
        """Say whether somebody asked since the settings were read the last time."""
        return self._requested.is_set()

    def reload_if_requested(self) -> bool:
        """Read the settings anew if somebody asked; say whether others are in force now."""
        if not self._requested.is_set():
            return False
        self._requested.clear()
        return self.reload()

    def reload(self) -> bool:
        """Read the settings anew, and take them if nothing in them is wrong; say whether others are in force now.

        What came of it is told in the log: ``settings_loaded``, ``settings_unchanged`` or ``settings_refused``.
        """
        before = self._roost.settings
        try:
            loaded = settings_with_sources(self._config, self._environ)
            settings = msgspec.structs.replace(loaded.settings, **{name: getattr(before, name) for name in _FIXED})
            if settings != before:
                self._roost.use(settings)
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

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.request_reload()
