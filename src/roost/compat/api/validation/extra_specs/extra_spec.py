"""What Nova has in ``nova.api.validation.extra_specs.base``: what an extra spec is called, and what it may be."""

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
        name: with its namespace; ``{parameter}`` stands for what matches the pattern of a parameter.
        description: for people.
        value: its ``type``, int, str or bool; of an int ``min`` and ``max``, of a str ``pattern`` or ``enum``.
        deprecated: whether users should not set it any more.
        parameters: each with ``name`` and ``pattern``.

    Raises:
        ValueError: there is no such type.
    """

    name: str
    description: str
    value: Mapping[str, Any]
    deprecated: bool = False
    parameters: Sequence[Mapping[str, str]] = ()
    name_regex: re.Pattern[str] | None = field(init=False)  # None: only its own name matches
    value_regex: re.Pattern[str] | None = field(init=False)
    _prefix: str = field(init=False, repr=False)  # all names that match begin so

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

    def names(self, name: str) -> bool:
        """Say whether this is the validator of an extra spec."""
        if self.name_regex is None:
            return name == self.name
        # Most names differ in the prefix, and comparing it is faster than the pattern.
        return name.startswith(self._prefix) and self.name_regex.fullmatch(name) is not None

    def validate(self, name: str, value: str) -> None:
        """Look at a value.

        Raises:
            ValidationError: the extra spec cannot have it.
        """
        problem = {int: self._number, str: self._text, bool: _truth}[self.value["type"]](value)
        if problem:
            raise ValidationError(f"the extra spec {name}={value!r} {problem}")

    def _number(self, value: str) -> str:
        try:
            number = int(value)
        except ValueError:
            return "is no whole number"
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
