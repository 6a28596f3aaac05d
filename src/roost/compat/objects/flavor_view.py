"""Flavors as Nova's filters read them."""

from typing import Any

import msgspec

from roost.model.flavor import Flavor as ModelFlavor


class Flavor(ModelFlavor, frozen=True, kw_only=True):
    """A size of instance, also as the table that filters of Icehouse read."""

    @property
    def flavorid(self) -> str:
        """The name; flavors have no other identity here."""
        return self.name

    def __contains__(self, key: object) -> bool:
        """Say whether a field is set."""
        return isinstance(key, str) and getattr(self, key, None) is not None

    def __getitem__(self, key: str) -> Any:
        """Return a field.

        Raises:
            KeyError: flavors have no such field.
        """
        if key not in self:
            raise KeyError(key)
        return getattr(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a field, or ``default`` where flavors have no such field."""
        return getattr(self, key, default)


def show_flavor(flavor: ModelFlavor) -> Flavor:
    """Return a flavor with what plug-ins expect of one."""
    return flavor if isinstance(flavor, Flavor) else Flavor(**msgspec.structs.asdict(flavor))
