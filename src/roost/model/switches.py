"""Texts for true and false."""

YES = frozenset({"1", "t", "true", "on", "y", "yes"})
NO = frozenset({"0", "f", "false", "off", "n", "no"})


def is_true(text: str | None) -> bool:
    """Return whether a text means true; unknown texts mean false.

    >>> [is_true(text) for text in ("Yes", "1", "maybe", None)]
    [True, True, False, False]
    """
    return text is not None and text.strip().lower() in YES
