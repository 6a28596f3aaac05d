"""Errors of the API in the words of the command line: options instead of JSON paths."""

import re
from collections.abc import Mapping

import click
from click.core import ParameterSource

# Fields whose options have other names.
_OPTIONS: Mapping[str, str] = {
    "availability_zone": "--zone",
    "force_hosts": "--host",
    "extra_specs": "--extra-spec",
    "properties": "--property",
    "cpu_allocation_ratio": "--cpu-ratio",
    "ram_allocation_ratio": "--memory-ratio",
    "disk_allocation_ratio": "--disk-ratio",
    "project_id": "--project",
    "user_id": "--user",
    "disabled_reason": "--reason",
}
_PLACE = re.compile(r"[$?][.]?(\w+)(.*)", re.DOTALL)


def name_option(detail: str, field: str) -> str:
    """Return an error of the API, with the option of the current command in place of the JSON path.

    Args:
        detail: the error; it begins with the field.
        field: JSON path, or ``?name`` of a parameter; empty: the error is about no field.
    """
    place = _PLACE.fullmatch(field)
    if place is None or not detail.startswith(f"{field}: "):
        return detail
    text = detail.removeprefix(f"{field}: ")
    name = _find_parameter(place[1])
    if name is not None:
        return f"{name}{place[2]}: {text}"
    return f"{place[1]}{place[2]}: {text}"


def _find_parameter(field: str) -> str | None:
    """Return the option or argument of the current command for a field of the request; None: it has none."""
    context = click.get_current_context(silent=True)
    if context is None:
        return None
    option = _OPTIONS.get(field, f"--{field.replace('_', '-')}")
    for parameter in context.command.params:
        is_given = context.get_parameter_source(parameter.name or "") is not ParameterSource.DEFAULT
        if option in parameter.opts and is_given:
            return option
        if isinstance(parameter, click.Argument) and parameter.name == field:
            return parameter.make_metavar(context)
    return None
