"""An index of consumers by provider and by project."""

from collections.abc import Collection, Iterable
from typing import Generic, Protocol, TypeVar

from roost.model.writes import CLASS_BITS


class IndexedConsumer(Protocol):
    """The indexed fields of a consumer."""

    id: int
    project_id: str
    takes: list[tuple[int, int]]  # inventory id, amount


H = TypeVar("H", bound=IndexedConsumer)
K = TypeVar("K")


class ConsumerIndex(Generic[H]):
    """Consumers by provider and by project.

    Decisions need no index, so a state builds it on first use and updates it from then on.

    Args:
        holders: all current consumers.
    """

    __slots__ = ("_of_project", "_of_provider")

    def __init__(self, holders: Iterable[H]) -> None:
        self._of_provider: dict[int, dict[int, H]] = {}
        self._of_project: dict[str, dict[int, H]] = {}
        for holder in holders:
            self.add(holder)

    def find_by_provider(self, provider_id: int) -> Collection[H]:
        """Find the consumers with allocations on a provider, in order of creation; valid until the next change."""
        return self._of_provider.get(provider_id, {}).values()

    def find_by_project(self, project_id: str) -> Collection[H]:
        """Find the consumers of a project, in order of creation; valid until the next change."""
        return self._of_project.get(project_id, {}).values()

    def add(self, holder: H) -> None:
        """Add a new consumer."""
        self._of_project.setdefault(holder.project_id, {})[holder.id] = holder
        for inventory_id, _ in holder.takes:
            self._of_provider.setdefault(inventory_id >> CLASS_BITS, {})[holder.id] = holder

    def remove(self, holder: H) -> None:
        """Remove a consumer."""
        _forget(self._of_project, holder.project_id, holder.id)
        for provider_id in {inventory_id >> CLASS_BITS for inventory_id, _ in holder.takes}:
            _forget(self._of_provider, provider_id, holder.id)


def _forget(holders_of: dict[K, dict[int, H]], key: K, number: int) -> None:
    holders = holders_of[key]
    del holders[number]
    if not holders:
        del holders_of[key]
