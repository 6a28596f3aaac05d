"""The part of ``oslo_utils.strutils`` that plug-ins use."""

from roost.model.switches import NO, YES


def bool_from_string(subject: object, strict: bool = False, default: bool = False) -> bool:  # noqa: FBT001, FBT002  # oslo.utils'
    """Say whether a text means true.

    Raises:
        ValueError: it means neither true nor false, and ``strict`` is set.
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
