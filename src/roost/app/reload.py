"""Reloads the settings of a running server on request: all of them, or none if any is wrong. Reports them."""

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from types import FrameType

import msgspec

from roost.app.database_choice import setting_rows, settings_with_sources
from roost.app.placement_server import COMMAND_LINE, ServerConfig
from roost.errors import BadSettings, first_line
from roost.model.settings.log_settings import Log
from roost.model.settings.roost_settings import Settings
from roost.model.settings.setting_rows import SettingsReport
from roost.observe import log
from roost.product import Roost
from roost.settings import LoadedSettings, values_of

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
        on_load: called with valid settings as they are in the files.
    """

    def __init__(
        self,
        roost: Roost,
        *,
        config: Path | None,
        environ: Mapping[str, str],
        file_settings: Settings | None = None,
        on_load: Callable[[LoadedSettings], None] = lambda _loaded: None,
    ) -> None:
        self._roost = roost
        self._file_settings = file_settings or roost.settings
        self._log_at_start = roost.settings.log
        self._config = config
        self._environ = environ
        self._on_load = on_load
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
            self._on_load(loaded)
        except BadSettings as error:
            log.event("settings_refused", error=str(error), process=os.getpid())
            return False
        except OSError as error:
            log.event("settings_refused", error=first_line(error), process=os.getpid())
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
            process=os.getpid(),
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


class SettingsReporter:
    """Reports the settings of a running server, with their sources.

    Args:
        config: the configuration at the start.
    """

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._sources = dict(config.sources)
        self._file_settings = config.file_settings
        self._needs_restart: list[str] = []
        self._last: tuple[Settings, SettingsReport] | None = None
        self.report(config.settings)  # Requests then find a report.

    def follow(self, loaded: LoadedSettings) -> None:
        """Use the sources of settings after a reload."""
        at_start = {name: source for name, source in self._config.sources.items() if name[0] in _FIXED}
        self._sources = {name: source for name, source in loaded.sources.items() if name[0] not in _FIXED} | at_start
        before, after = values_of(self._config.file_settings), values_of(loaded.settings)
        self._needs_restart = [
            f"{section}.{key}"
            for (section, key), value in after.items()
            if section in _FIXED and before.get((section, key)) != value
        ]
        self._file_settings, self._last = loaded.settings, None

    def report(self, settings: Settings) -> SettingsReport:
        """Return a report of the settings in force."""
        if self._last is None or self._last[0] is not settings:
            in_file, at_start = values_of(self._file_settings), values_of(self._config.file_settings)
            options = {
                name: COMMAND_LINE
                for name, value in values_of(settings).items()
                if name[0] != "placement" and value != (at_start if name[0] in _FIXED else in_file).get(name)
            }
            store = msgspec.structs.replace(settings.store, url=self._config.url)
            rows = setting_rows(msgspec.structs.replace(settings, store=store), self._sources | options)
            self._last = settings, SettingsReport(rows=rows, needs_restart=self._needs_restart)
        return self._last[1]
