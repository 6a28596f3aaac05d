"""Counterpart of ``nova.i18n``: messages without translation."""


def _(message: str) -> str:
    """Return a message unchanged."""
    return message


def translate(value: object, user_locale: str | None = None) -> object:  # noqa: ARG001  # Nova's signature.
    """Return a message unchanged."""
    return value
