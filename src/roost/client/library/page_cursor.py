"""Lists of several pages."""

from typing import Protocol, TypeVar

import msgspec

Query = TypeVar("Query", bound=msgspec.Struct)
PageT = TypeVar("PageT", bound="Page")


class Page(Protocol):
    """One page of a list."""

    @property
    def next(self) -> str | None:
        """The cursor of the next page; None: this is the last."""


def next_query(query: Query, page: Page) -> Query | None:
    """Return the query for the page after another one; None: it was the last."""
    cursor = page.next
    if cursor is None:
        return None
    is_text = isinstance(getattr(query, "cursor", None), str)
    return msgspec.structs.replace(query, cursor=cursor if is_text else int(cursor))
