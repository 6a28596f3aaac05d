"""What a Placement API answers, whoever asks it and however."""

from typing import Any, NamedTuple

GENERATION_CODE = "placement.concurrent_update"
INVENTORY_CODE = "placement.inventory.inuse"


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: Any  # decoded; None: there was none
    is_repeated: bool = False  # an earlier try may have been carried out without telling us

    @property
    def problem(self) -> str:
        """What an error says of itself, in one line."""
        return " ".join(str(self._of_error("detail", f"status {self.status}")).split())

    @property
    def code(self) -> str:
        """The code of an error, as ``placement.concurrent_update``; empty: it has none."""
        return str(self._of_error("code", ""))

    def _of_error(self, name: str, otherwise: str) -> Any:
        try:
            return self.body["errors"][0][name]
        except (LookupError, TypeError):
            return otherwise


def newest_minor(document: object) -> int:
    """Return the newest microversion 1.x that a Placement offers, by what it answers at its root.

    Raises:
        ValueError: no Placement answers so.

    >>> newest_minor({"versions": [{"id": "v1.0", "max_version": "1.39"}]})
    39
    """
    try:
        return int(document["versions"][0]["max_version"].removeprefix("1."))  # type: ignore[index]  # it may be anything
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ValueError("it does not tell its versions") from None
