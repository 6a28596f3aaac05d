"""Counterpart of ``nova.api.validation.extra_specs.base``: names and values of extra specs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roost.compat.exception import ValidationError
from roost.model.switches import NO, YES

_TYPES = (int, str, bool)


@dataclass(kw_only=True)
class ExtraSpecValidator:
    """An extra spec, or a family of them.

    Args:
        name: with its namespace; ``{parameter}`` matches the pattern of the parameter.
        description: help text.
        value: ``type`` is int, str or bool; an int may have ``min`` and ``max``, a str ``pattern`` or ``enum``.
        deprecated: whether users should no longer set this extra spec.
        parameters: each with ``name`` and ``pattern``.

    Raises:
        ValueError: the type is unknown.
    """

    name: str
    description: str
    value: Mapping[str, Any]
    deprecated: bool = False
    parameters: Sequence[Mapping[str, str]] = ()
    name_regex: re.Pattern[str] | None = field(init=False)  # None: without parameters
    value_regex: re.Pattern[str] | None = field(init=False)
    _prefix: str = field(init=False, repr=False)  # of all matching names

    def __post_init__(self) -> None:
        if self.value.get("type") not in _TYPES:
            raise ValueError(f"extra spec {self.name}: its type must be int, str or bool")
        pattern = re.escape(self.name)
        for each in self.parameters:
            placeholder = re.escape("{" + each["name"] + "}")
            pattern = pattern.replace(placeholder, f"(?P<{each['name']}>{each['pattern']})")
        self.name_regex = re.compile(pattern) if self.parameters else None
        self._prefix = self.name.partition("{")[0]
        value_pattern = self.value.get("pattern")
        self.value_regex = re.compile(value_pattern) if self.value["type"] is str and value_pattern else None

    def matches(self, name: str) -> bool:
        """Return whether this validator matches a name."""
        if self.name_regex is None:
            return name == self.name
        # Most names have another prefix. Comparing the prefix is faster than matching the pattern.
        return name.startswith(self._prefix) and self.name_regex.fullmatch(name) is not None

    def validate(self, name: str, value: str) -> None:
        """Check a value.

        Raises:
            ValidationError: the value is invalid.
        """
        problem = {int: self._number, str: self._text, bool: _truth}[self.value["type"]](value)
        if problem:
            raise ValidationError(f"the extra spec {name}={value!r} {problem}")

    def _number(self, value: str) -> str:
        try:
            number = int(value)
        except ValueError:
            return "is not a whole number"
        low, high = self.value.get("min"), self.value.get("max")
        if low is not None and number < low:
            return f"is less than {low}"
        return f"is more than {high}" if high is not None and number > high else ""

    def _text(self, value: str) -> str:
        if self.value_regex is not None and not self.value_regex.fullmatch(value):
            return f"does not match {self.value_regex.pattern}"
        allowed = self.value.get("enum")
        return f"is none of {', '.join(allowed)}" if allowed and value not in allowed else ""


def _truth(value: str) -> str:
    return "" if value.strip().lower() in YES | NO else "is neither true nor false"
