"""A query for the records of changes by clients, and the kinds of most of them."""

import msgspec

# Claims and releases, in the order of the condition of the index that leaves them out.
FREQUENT_KINDS = ("allocation.update", "allocation.delete", "decision.create", "decision.next", "instance.release")


class ChangeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query for changes, newest first; all conditions must hold."""

    object: str = ""  # empty: any, like the other texts
    user_id: str = ""
    project_id: str | None = None
    request_id: str = ""
    kinds: tuple[str, ...] | None = None  # None: all
    since_s: float | None = None  # seconds since the epoch, inclusive
    until_s: float | None = None  # inclusive
    before: tuple[float, int] | None = None  # time and id of the last change of the previous page
    newest: int = 100  # upper bound of the result count
