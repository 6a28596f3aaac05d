"""Pages of what has rising numbers."""

from collections.abc import Iterable
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

Item = TypeVar("Item")


class PageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of a list is shown."""

    limit: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="So many at most.")] = 100
    cursor: Annotated[Annotated[int, Meta(ge=0, le=2**63 - 1)], Meta(description="next of the page before.")] = 0


def page_of(found: Iterable[tuple[int, Item]], query: PageQuery) -> tuple[list[Item], str | None]:
    """Return a page, and the cursor of the next one; None: this is the last.

    Args:
        found: numbers above the cursor, rising, each with what it stands for.
    """
    page: list[tuple[int, Item]] = []
    for number, item in found:
        if len(page) == query.limit:
            return [each for _, each in page], str(page[-1][0])
        page.append((number, item))
    return [each for _, each in page], None
