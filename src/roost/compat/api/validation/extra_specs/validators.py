"""Counterpart of ``nova.api.validation.extra_specs.validators``: checks of a flavor's extra specs."""

import functools
import logging
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from roost.compat.aliases import install_aliases
from roost.compat.api.validation.extra_specs import (
    accel,
    aggregate_instance_extra_specs,
    capabilities,
    hw,
    hw_rng,
    hw_video,
    null,
    os,
    pci_passthrough,
    quota,
    resources,
    traits,
    vmware,
)
from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator
from roost.compat.exception import ValidationError

NAMESPACE = "nova.api.extra_spec_validators"  # group of entry points of third-party validators
_BUILT_IN: tuple[ModuleType, ...] = (
    accel,
    aggregate_instance_extra_specs,
    capabilities,
    hw,
    hw_rng,
    hw_video,
    null,
    os,
    pci_passthrough,
    quota,
    resources,
    traits,
    vmware,
)
_log = logging.getLogger(__name__)


def validate(name: str, value: str) -> None:
    """Check an extra spec. Names without a namespace, or in an unknown namespace, are accepted.

    Raises:
        ValidationError: the name is unknown in its namespace, or the value is invalid.
    """
    validators = _load_all()
    validator = validators.by_name.get(name) or next(
        (each for each in validators.patterned if each.matches(name)), None
    )
    if validator is not None:
        validator.validate(name, value)
    elif ":" in name and _namespace(name) in validators.namespaces:
        raise ValidationError(f"there is no extra spec {name}")


def problem_of(name: str, value: str) -> str:
    """Return the problem of an extra spec as a sentence; empty: valid."""
    try:
        validate(name, value)
    except ValidationError as error:
        return str(error)
    return ""


def load_problems() -> list[tuple[str, str]]:
    """Return the entry points that cannot be loaded, with the reasons."""
    return list(_load_all().problems)


@dataclass(frozen=True)
class _Validators:
    """All validators, built-in and from entry points."""

    by_name: dict[str, ExtraSpecValidator]
    patterned: list[ExtraSpecValidator]  # validators with parameters in their names
    namespaces: set[str]
    problems: list[tuple[str, str]]  # entry points that cannot be loaded, with reasons


@functools.cache
def _load_all() -> _Validators:
    """Load all validators; log failures."""
    install_aliases()
    problems: list[tuple[str, str]] = []
    by_name = {each.name: each for module in _BUILT_IN for each in module.register()}
    for entry in sorted(entry_points(group=NAMESPACE), key=lambda entry: entry.name):
        if entry.value.startswith("nova."):
            continue  # Roost has its own validators for the namespaces of an installed Nova.
        try:
            by_name.update({each.name: _convert(each) for each in entry.load().register()})
        except (Exception, SystemExit) as error:  # noqa: BLE001  # A plug-in may fail in any way.
            _log.warning("the extra spec validators of %s cannot be loaded: %s", entry.name, error)
            problems.append((entry.name, str(error)))
    return _Validators(
        by_name=by_name,
        patterned=[each for each in by_name.values() if each.name_regex is not None],
        namespaces={_namespace(name) for name in by_name if ":" in name},
        problems=problems,
    )


def _convert(validator: Any) -> ExtraSpecValidator:
    """Convert a validator of an installed Nova to Roost's class."""
    if isinstance(validator, ExtraSpecValidator):
        return validator
    return ExtraSpecValidator(
        name=validator.name,
        description=validator.description,
        value=validator.value,
        deprecated=validator.deprecated,
        parameters=validator.parameters,
    )


def _namespace(name: str) -> str:
    """Return the text before the colon, without a suffix parameter."""
    return name.partition(":")[0].partition("{")[0]
