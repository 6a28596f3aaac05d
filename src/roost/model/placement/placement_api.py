"""Responses of a Placement API, independent of the transport."""

from typing import Any, NamedTuple

GENERATION_CODE = "placement.concurrent_update"
INVENTORY_CODE = "placement.inventory.inuse"


class Answer(NamedTuple):
    """One response."""

    status: int
    body: Any  # decoded; None: empty
    is_repeated: bool = False  # an earlier attempt may have succeeded without a response

    @property
    def problem(self) -> str:
        """The detail of an error, in one line."""
        return " ".join(str(self._error_field("detail", f"status {self.status}")).split())

    @property
    def code(self) -> str:
        """The code of an error, such as ``placement.concurrent_update``; empty: none."""
        return str(self._error_field("code", ""))

    def _error_field(self, name: str, default: str) -> Any:
        try:
            return self.body["errors"][0][name]
        except (LookupError, TypeError):
            return default


def newest_minor(document: object) -> int:
    """Return the newest microversion 1.x of a Placement, from its version document.

    Raises:
        ValueError: the document is not a version document.

    >>> newest_minor({"versions": [{"id": "v1.0", "max_version": "1.39"}]})
    39
    """
    try:
        return int(document["versions"][0]["max_version"].removeprefix("1."))  # type: ignore[index]  # it may be anything
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ValueError("its version document is invalid") from None
