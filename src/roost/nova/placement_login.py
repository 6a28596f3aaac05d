"""Section ``[placement]`` of nova.conf: how Nova reaches Placement."""

from roost.client.keystone_login import LoginOptions
from roost.compat.ini import Ini, split_list
from roost.errors import BadSettings, quote_value

SECTION = "placement"
_TRUTHS = {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False, "no": False}


def read_placement_options(ini: Ini) -> LoginOptions | None:
    """Read the options of a nova.conf; None: the section has none of them.

    Raises:
        BadSettings: an option is invalid.
        BadFile: a value refers to a missing option.

    Source:
        keystoneauth1/loading/conf.py, session.py, adapter.py; nova/conf/placement.py.
    """
    login_section = ini.get(SECTION, "auth_section") or SECTION
    if not ini.sections.get(SECTION) and not ini.sections.get(login_section):
        return None
    auth_type = ini.get(login_section, "auth_type") or ini.get(login_section, "auth_plugin") or ""
    values = {option: ini.get(login_section, option) or "" for option in ini.sections.get(login_section, {})}
    options = LoginOptions(where=f"{ini.path}: [{login_section}]", auth_type=auth_type.strip(), values=values)
    texts = {name: ini.get(SECTION, name) or None for name in ("service_name", "region_name", "endpoint_override")}
    files = {name: ini.get(SECTION, name) or None for name in ("cafile", "certfile", "keyfile")}
    return LoginOptions(
        where=options.where,
        auth_type=options.auth_type,
        values=values,
        service_type=ini.get(SECTION, "service_type") or options.service_type,
        valid_interfaces=_interfaces(ini) or options.valid_interfaces,
        insecure=_truth(ini, "insecure"),
        timeout_s=_seconds(ini, "timeout"),
        **texts,
        **files,
    )


def _interfaces(ini: Ini) -> tuple[str, ...]:
    return tuple(ini.get_list(SECTION, "valid_interfaces")) or tuple(split_list(ini.get(SECTION, "os_interface") or ""))


def _truth(ini: Ini, option: str) -> bool:
    text = ini.get(SECTION, option) or "false"
    if text.lower() not in _TRUTHS:
        raise _build_error(ini, option, text, problem="must be true or false")
    return _TRUTHS[text.lower()]


def _seconds(ini: Ini, option: str) -> float | None:
    text = ini.get(SECTION, option)
    if not text:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise _build_error(ini, option, text, problem="must be a whole number of seconds above 0")
    return float(text)


def _build_error(ini: Ini, option: str, text: str, *, problem: str) -> BadSettings:
    return BadSettings(f"{ini.path}: [{SECTION}] {option}", f"{problem}, got {quote_value(text)}")
