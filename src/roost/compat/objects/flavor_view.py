"""Flavors for Nova's filters."""

from typing import Any

import msgspec

from roost.model.flavor import Flavor as ModelFlavor


class Flavor(ModelFlavor, frozen=True, kw_only=True):
    """A flavor. Filters of Icehouse can use it as a dict."""

    @property
    def flavorid(self) -> str:
        """The name: flavors of Roost have no other id."""
        return self.name

    def __contains__(self, key: object) -> bool:
        """Return whether a field is set."""
        return isinstance(key, str) and getattr(self, key, None) is not None

    def __getitem__(self, key: str) -> Any:
        """Return a field.

        Raises:
            KeyError: the field is missing.
        """
        if key not in self:
            raise KeyError(key)
        return getattr(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a field, or ``default`` if it is missing."""
        return getattr(self, key, default)


def show_flavor(flavor: ModelFlavor) -> Flavor:
    """Return a flavor with the attributes for plug-ins."""
    return flavor if isinstance(flavor, Flavor) else Flavor(**msgspec.structs.asdict(flavor))
