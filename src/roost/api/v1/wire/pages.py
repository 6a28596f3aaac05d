"""Pages of lists with ascending numbers."""

from collections.abc import Iterable
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

FIELDS_TEXT = (
    "Only these fields of each entry, separated by commas; without it, all fields. Entries then lack fields that the "
    "schema requires."
)

Item = TypeVar("Item")


class PageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of a list."""

    limit: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="Maximum number of entries.")] = 100
    cursor: Annotated[
        Annotated[int, Meta(ge=0, le=2**63 - 1)], Meta(description="The value next of the previous page.")
    ] = 0


def page_of(entries: Iterable[tuple[int, Item]], query: PageQuery) -> tuple[list[Item], str | None]:
    """Return a page, and the cursor of the next one; None: this is the last.

    Args:
        entries: numbers above the cursor in ascending order, each with its item.
    """
    page: list[tuple[int, Item]] = []
    for number, item in entries:
        if len(page) == query.limit:
            return [each for _, each in page], str(page[-1][0])
        page.append((number, item))
    return [each for _, each in page], None
