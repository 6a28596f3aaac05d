"""An existing ``nova.conf``: its options as settings, and notes on options without effect."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from roost.compat.ini import Ini, read_ini, read_truth, split_list
from roost.errors import BadSettings, quote_value

# Setting -> section and name of the same option in Nova's files, if they differ.
# Names such as "scheduler_driver" are from Icehouse.
_RENAMED: Mapping[tuple[str, str], tuple[str, str]] = {
    ("filter_scheduler", "enabled_filters"): ("DEFAULT", "scheduler_default_filters"),
    ("filter_scheduler", "available_filters"): ("DEFAULT", "scheduler_available_filters"),
    ("filter_scheduler", "weight_classes"): ("DEFAULT", "scheduler_weight_classes"),
    ("filter_scheduler", "host_subset_size"): ("DEFAULT", "scheduler_host_subset_size"),
    ("scheduler", "max_attempts"): ("DEFAULT", "scheduler_max_attempts"),
    ("scheduler", "driver"): ("DEFAULT", "scheduler_driver"),
    ("scheduler", "periodic_task_interval"): ("DEFAULT", "scheduler_driver_task_period"),
    ("metrics", "weight_setting"): ("metrics", "metrics_weight_setting"),  # the name in old documents of Nova
    ("conductor", "shelved_offload_time_s"): ("DEFAULT", "shelved_offload_time"),
    ("conductor", "consecutive_build_service_disable_threshold"): (
        "compute",
        "consecutive_build_service_disable_threshold",
    ),
    ("agent", "update_s"): ("DEFAULT", "update_resources_interval"),
    ("agent", "pci_in_placement"): ("pci", "report_in_placement"),
    ("agent", "device_spec"): ("pci", "device_spec"),
}
# Nova's defaults for missing options that differ from ours.
_DEFAULTS: Mapping[tuple[str, str], Any] = {
    ("agent", "provider_config_location"): "/etc/nova/provider_config/",
}
# Sections with another meaning in the file: their settings are read only from the places in ``_RENAMED``.
_OTHER_MEANING = ("conductor",)
# Options with one value per line. Of any other option only the last line counts.
_REPEATED = {("filter_scheduler", "available_filters"), ("pci", "alias"), ("agent", "device_spec")}
# Read by the service nova-scheduler and for the logins at Placement and Neutron, and not as settings.
_NOVA_SECTIONS = (
    "api_database",
    "database",
    "neutron",
    "notifications",
    "oslo_messaging_notifications",
    "oslo_messaging_rabbit",
    "placement",
)
_NOVA_OPTIONS = {
    ("DEFAULT", option)
    for option in (
        "control_exchange",
        "transport_url",
        "host",
        "service_down_time",
        "report_interval",
        "rpc_response_timeout",
    )
}
# Sections with a note for each option without effect; other sections have one note.
_RELATED = ("filter_scheduler", "scheduler", "metrics", "pci", "workarounds", "compute")
# Reasons why options have no effect; the default is that nothing needs them.
_REASONS: Mapping[tuple[str, str], str] = {
    ("DEFAULT", "metrics_weight_setting"): "it is weight_setting in section [metrics]",
    ("filter_scheduler", "metrics_weight_setting"): "it is weight_setting in section [metrics]",
    ("filter_scheduler", "track_instance_changes"): "the instances of a host are always known",
    ("DEFAULT", "scheduler_tracks_instance_changes"): "the instances of a host are always known",
    ("scheduler", "discover_hosts_in_cells_interval"): "a host is known once it is registered",
    ("scheduler", "workers"): "start several processes, on PostgreSQL or MariaDB",
    ("scheduler", "host_manager"): "Roost has only one host manager",
    ("DEFAULT", "scheduler_host_manager"): "Roost has only one host manager",
    ("DEFAULT", "scheduler_manager"): "Roost has only one scheduler manager",
    ("DEFAULT", "scheduler_json_config_location"): "options come from the settings alone",
}
_DRIVERS: Mapping[str, str] = {
    "nova.scheduler.filter_scheduler.FilterScheduler": "filter",
    "nova.scheduler.chance.ChanceScheduler": "chance",
    "nova.scheduler.caching_scheduler.CachingScheduler": "caching",
    "filter_scheduler": "filter",
    "chance_scheduler": "chance",
    "caching_scheduler": "caching",
}


class NovaConf:
    """The settings of a file; see ``read_nova_conf``."""

    def __init__(self, ini: Ini) -> None:
        self._ini = ini
        self._repeated = set(_REPEATED)

    def repeat(self, places: Iterable[tuple[str, str]]) -> None:
        """Treat every line of the given options, by section and key, as a value."""
        self._repeated.update(places)

    def values(self, section: str, kinds: Mapping[str, str]) -> dict[str, Any]:
        """Return the file's values for the settings of a section.

        Args:
            section: section of the settings.
            kinds: kind of each setting, as in ``roost.settings.Setting.kind``.

        Raises:
            BadSettings: a value has the wrong kind, or refers to a missing option.
        """
        values = {}
        for key, kind in kinds.items():
            place = self._place(section, key)
            if place is not None:
                values[key] = self._value(section, key, kind, place)
        return values

    def defaults(self, section: str) -> dict[str, Any]:
        """Return Nova's defaults for settings of a section, where they differ from ours."""
        return {key: value for (of, key), value in _DEFAULTS.items() if of == section}

    def full_name(self, section: str, key: str) -> str | None:
        """Return the file, line, section and option of a setting; None: not in the file."""
        place = self._place(section, key)
        return None if place is None else self._format_place(place)

    def source(self, section: str, key: str) -> str | None:
        """Return the file and line of a setting; None: not in the file."""
        place = self._place(section, key)
        return None if place is None else self._where(place)

    @property
    def source_of_defaults(self) -> str:
        """The source of ``defaults``."""
        return f"{self._ini.path}, by default"

    def notes(self, keys_by_section: Mapping[str, Iterable[str]]) -> Iterator[str]:
        """Yield sentences on options without effect: one per option of related sections, then one for other sections.

        Args:
            keys_by_section: the settings of each section.
        """
        used = {self._place(section, key) for section, keys in keys_by_section.items() for key in keys}
        rest: dict[str, list[str]] = {}
        for place in self._ini.options():
            section, option = place
            if place in used or section in _NOVA_SECTIONS or place in _NOVA_OPTIONS:
                continue
            if place in _REASONS:
                yield f"{self._where(place)}: [{section}] {option} has no effect: {_REASONS[place]}"
            elif section in _RELATED:
                matches = difflib.get_close_matches(option, keys_by_section.get(section, ()), n=1, cutoff=0.8)
                reason = f"the nearest known name is {matches[0]}" if matches else "Roost does not need it"
                yield f"{self._where(place)}: [{section}] {option} has no effect: {reason}"
            else:
                rest.setdefault(section, []).append(option)
        if "DEFAULT" in rest:
            yield f"{self._ini.path}: these options of [DEFAULT] have no effect: {', '.join(rest.pop('DEFAULT'))}"
        if rest:
            yield f"{self._ini.path}: these sections have no effect: {', '.join(rest)}"

    def _place(self, section: str, key: str) -> tuple[str, str] | None:
        """Return section and option of a setting in the file, current names before older ones."""
        places = [] if section in _OTHER_MEANING else [(section, key)]
        if (section, key) in _RENAMED:
            places.append(_RENAMED[section, key])
        if section == "filter_scheduler":
            places.append(("DEFAULT", key))  # The section in Icehouse.
        if section == "agent":
            places += [("DEFAULT", key), ("compute", key)]  # Nova has them in these sections.
        return next((place for place in places if place[1] in self._ini.sections.get(place[0], {})), None)

    def _where(self, place: tuple[str, str]) -> str:
        return f"{self._ini.path}:{self._ini.lines[place]}"

    def _value(self, section: str, key: str, kind: str, place: tuple[str, str]) -> Any:
        try:
            if (section, key) in self._repeated:
                return self._ini.get_all(*place)
            text = self._ini.get(*place) or ""
        except BadSettings as error:
            raise BadSettings(self._where(place), error.problem) from None
        if (section, key) == ("scheduler", "driver"):
            return self._driver(text, place)
        if kind not in _KINDS:
            raise self._build_error(place, f"is a {kind}, which only a TOML file can hold", text)
        convert, kind_text = _KINDS[kind]
        try:
            value = convert(text)
        except ValueError:
            raise self._build_error(place, f"must be {kind_text}", text) from None
        return _CONVERSIONS[place](value) if place in _CONVERSIONS else value

    def _driver(self, text: str, place: tuple[str, str]) -> str:
        if text not in _DRIVERS:
            raise self._build_error(place, f"must be one of {', '.join(_DRIVERS)}", text)
        return _DRIVERS[text]

    def _build_error(self, place: tuple[str, str], problem: str, text: str) -> BadSettings:
        return BadSettings(self._format_place(place), f"{problem}, got {quote_value(text)}")

    def _format_place(self, place: tuple[str, str]) -> str:
        """Return file, line, section and option."""
        return f"{self._where(place)}: {'.'.join(place)}"


def read_nova_conf(path: Path) -> NovaConf:
    """Read a file.

    Raises:
        BadSettings: the file cannot be read, or a line is invalid.
    """
    return NovaConf(read_ini(path))


def _period_s(interval_s: float) -> float:
    """Convert Nova's interval to ``update_s``: 0 becomes 60 seconds; a negative value, for no updates, becomes 0."""
    return 60.0 if interval_s == 0 else max(interval_s, 0.0)


# Conversions of options with other units or special values than their settings.
_CONVERSIONS: Mapping[tuple[str, str], Callable[[Any], Any]] = {("DEFAULT", "update_resources_interval"): _period_s}
_KINDS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "whole number": (int, "a whole number"),
    "number": (float, "a number"),
    "text": (str, "a text"),
    "true or false": (read_truth, "true or false"),
    "list": (split_list, "a list"),
}
