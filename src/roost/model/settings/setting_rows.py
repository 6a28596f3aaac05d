"""Settings as rows for people: with their sources, and without secrets."""

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

# The account of a URL, whose password may contain @; and a password among its parameters.
_PASSWORD = re.compile(r"(?<=://)([^/@:]*:)[^/]*(?=@)|(?<=password=)[^&]+")
# Receivers of webhooks identify their senders by a secret in the path or in the parameters.
_AFTER_HOST = re.compile(r"(?<=://)([^/?#]*[/?#]).+")
_SECRET_PATHS = {("notifications", "webhook")}


class SettingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One setting in force."""

    section: Annotated[str, Meta(description="Section of the settings file.")]
    key: Annotated[str, Meta(description="Name in the section.")]
    value: Annotated[Any, Meta(description="Value in force; *** replaces a password or another secret.")]
    default: Annotated[Any, Meta(description="Value without any source.")]
    source: Annotated[
        str, Meta(description="Source of the value: a file and its line, command line, environment or default.")
    ]
    kind: Annotated[str, Meta(description="Type of the value, in words.")]
    description: Annotated[str, Meta(description="Purpose, with the unit of the value.")]


class SettingsReport(msgspec.Struct, frozen=True, kw_only=True):
    """All settings in force."""

    rows: list[SettingRow]
    needs_restart: list[str] = []  # names of settings with another value in the file since the start


def hide_secrets(section: str, key: str, value: object) -> object:
    """Mask the passwords and other secrets in the value of a setting.

    >>> hide_secrets("store", "url", "postgresql://roost:secret@db/roost")
    'postgresql://roost:***@db/roost'
    >>> hide_secrets("notifications", "webhook", "https://hooks.example/T0/secret")
    'https://hooks.example/***'
    """
    if isinstance(value, list | tuple):
        return [hide_secrets(section, key, each) for each in value]
    if not isinstance(value, str):
        return value
    text = _PASSWORD.sub(r"\1***", value)
    return _AFTER_HOST.sub(r"\1***", text) if (section, key) in _SECRET_PATHS else text
