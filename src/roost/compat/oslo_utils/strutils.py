"""The part of ``oslo_utils.strutils`` for plug-ins."""

from roost.model.switches import NO, YES


def bool_from_string(subject: object, strict: bool = False, default: bool = False) -> bool:  # noqa: FBT001, FBT002  # oslo.utils'
    """Return whether a text means true.

    Raises:
        ValueError: ``strict`` is set, and the text means neither true nor false.
    """
    if isinstance(subject, bool):
        return subject
    text = str(subject).strip().lower()
    if text in YES:
        return True
    if text in NO:
        return False
    if strict:
        raise ValueError(f"{subject!r} is neither true nor false")
    return default
