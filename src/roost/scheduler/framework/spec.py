"""A request in the form that rules read."""

from typing import Literal

from roost.engine.candidates.query import CompiledQuery
from roost.engine.columns.state import Group
from roost.model.devices.pci import PciRequest
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.request import Destination, Request

# The part of a request that a check judges. "hosts": named hosts, "search": all groups together, "rule": the input
# of a filter, "refusal": the whole request, before any host is judged.
Subject = Literal["trait", "aggregate", "tree", "group", "class", "refusal", "amount", "search", "hosts", "rule"]


class Spec:
    """A request and its server group, at one moment. Rules must not change it."""

    __slots__ = ("group", "is_rebuild", "moved_uuid", "now_s", "pci_requests", "queries", "request")

    def __init__(
        self,
        request: Request,
        *,
        now_s: float,
        group: Group | None = None,
        moved_uuid: str | None = None,
        pci_requests: tuple[PciRequest, ...] = (),
        queries: tuple[CompiledQuery, ...] = (),
    ) -> None:
        self.request = request
        self.now_s = now_s  # seconds since the epoch; not part of the shape
        self.moved_uuid = moved_uuid  # uuid of the instance if it moves; None: a new instance
        self.group = group
        self.pci_requests = pci_requests  # all requested devices, including the flavor's aliases
        # Alternative queries to Placement; empty unless rules judge the providers of candidates.
        self.queries = queries
        self.is_rebuild = self.hint_list("_nova_check_type") == ["rebuild"]

    @property
    def is_multiple(self) -> bool:
        """Whether the request has several instances; each one sees the consumption of the previous ones."""
        return self.request.count > 1

    @property
    def flavor(self) -> Flavor:
        """The requested flavor."""
        return self.request.flavor

    @property
    def image(self) -> Image | None:
        """The boot image, if any; for a volume, its properties without an id."""
        image = self.request.image
        if image is None or image.id is None or not self.request.is_bfv:
            return image
        return Image(disk_format=image.disk_format, properties=image.properties)

    @property
    def destination(self) -> Destination | None:
        """The required destination, if any."""
        return self.request.destination

    @property
    def policy(self) -> Literal["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity", "fault-domain", ""]:
        """The policy of the request's server group, or ""."""
        return "" if self.group is None else self.group.policy  # type: ignore[return-value]  # checked when stored

    def hint(self, name: str, default: str | None = None) -> str | None:
        """Return the first value of a scheduler hint, or ``default``."""
        values = self.hint_list(name)
        return values[0] if values else default

    def hint_list(self, name: str) -> list[str]:
        """Return all values of a scheduler hint; a single value becomes a list of one."""
        value = self.request.hints.get(name)
        if value is None:
            return []
        return [value] if isinstance(value, str) else list(value)
