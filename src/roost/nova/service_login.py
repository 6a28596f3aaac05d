"""Sections of nova.conf that describe how Nova reaches another service, such as ``[placement]`` and ``[neutron]``."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from roost.client.keystone_login import LoginOptions
from roost.compat.ini import Ini, read_seconds, read_truth, split_list
from roost.errors import BadSettings, quote_value

T = TypeVar("T")


def read_login_options(ini: Ini, section: str, *, service_type: str) -> LoginOptions | None:
    """Read the options of a section; None: it has none of them.

    Args:
        service_type: type of the service in Keystone's catalog, unless the section has one.

    Raises:
        BadSettings: an option is invalid, or refers to a missing one.

    Source:
        keystoneauth1/loading/conf.py, session.py, adapter.py; nova/conf/placement.py, nova/conf/neutron.py.
    """
    login_section = ini.get(section, "auth_section") or section
    if not ini.sections.get(section) and not ini.sections.get(login_section):
        return None
    login, service = _Section(ini, login_section), _Section(ini, section)
    options = LoginOptions(
        where=f"{ini.path}: [{login_section}]",
        auth_type=(login.text("auth_type") or login.text("auth_plugin") or "").strip(),
        values={option: login.text(option) or "" for option in ini.sections.get(login_section, {})},
        service_type=service.text("service_type") or service_type,
        service_name=service.text("service_name"),
        region_name=service.text("region_name"),
        endpoint_override=service.text("endpoint_override"),
        cafile=service.text("cafile"),
        certfile=service.text("certfile"),
        keyfile=service.text("keyfile"),
        insecure=service.truth("insecure"),
        timeout_s=service.seconds("timeout"),
    )
    interfaces = service.interfaces()
    return msgspec.structs.replace(options, valid_interfaces=interfaces) if interfaces else options


class _Section:
    """A section of a nova.conf."""

    def __init__(self, ini: Ini, name: str) -> None:
        self._ini, self._name = ini, name

    def text(self, option: str) -> str | None:
        return self._ini.get(self._name, option) or None

    def interfaces(self) -> tuple[str, ...]:
        return tuple(self._ini.get_list(self._name, "valid_interfaces")) or tuple(
            split_list(self.text("os_interface") or "")
        )

    def truth(self, option: str) -> bool:
        return self._convert(option, self.text(option) or "false", read_truth)

    def seconds(self, option: str) -> float | None:
        text = self.text(option)
        return None if text is None else self._convert(option, text, read_seconds)

    def _convert(self, option: str, text: str, convert: Callable[[str], T]) -> T:
        try:
            return convert(text)
        except ValueError as error:
            where = f"{self._ini.path}: [{self._name}] {option}"
            raise BadSettings(where, f"{error}, got {quote_value(text)}") from None
