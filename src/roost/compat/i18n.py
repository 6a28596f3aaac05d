"""What Nova has in ``nova.i18n``: messages, which are not translated."""


def _(message: str) -> str:
    """Return a message as it is."""
    return message


def translate(value: object, user_locale: str | None = None) -> object:  # noqa: ARG001  # Nova's.
    """Return a message as it is."""
    return value
