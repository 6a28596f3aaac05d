"""A request as the rules see it."""

from typing import Literal

from roost.engine.candidates.query import Compiled
from roost.engine.columns.state import Group
from roost.model.devices.pci import PciRequest
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.request import Destination, Request

# What of a request a check judges: "hosts" those it names, "search" its groups together, "rule" what a filter reads,
# "refusal" all of it, before any host is looked at.
Subject = Literal["trait", "aggregate", "tree", "group", "class", "refusal", "amount", "search", "hosts", "rule"]


class Spec:
    """A request with its server group looked up, at a moment. Rules read it and never change it."""

    __slots__ = ("group", "is_rebuild", "moved_uuid", "now_s", "pci_requests", "queries", "request")

    def __init__(
        self,
        request: Request,
        *,
        now_s: float,
        group: Group | None = None,
        moved_uuid: str | None = None,
        pci_requests: tuple[PciRequest, ...] = (),
        queries: tuple[Compiled, ...] = (),
    ) -> None:
        self.request = request
        self.now_s = now_s  # seconds since the epoch; no part of the request's shape
        self.moved_uuid = moved_uuid  # of the instance that moves and is on a host already; None: a new one
        self.group = group
        self.pci_requests = pci_requests  # all devices it wants, those that flavors name by an alias included
        # The questions to Placement, of which a host is to answer one: only where rules judge by which providers.
        self.queries = queries
        self.is_rebuild = self.hint_list("_nova_check_type") == ["rebuild"]

    @property
    def is_multiple(self) -> bool:
        """Whether it is for several instances, of which each finds its host as those before it leave it."""
        return self.request.count > 1

    @property
    def flavor(self) -> Flavor:
        """The flavor asked for."""
        return self.request.flavor

    @property
    def image(self) -> Image | None:
        """The image to boot from, if any; that of a volume has properties, but no id that anybody asked for."""
        image = self.request.image
        if image is None or image.id is None or not self.request.is_bfv:
            return image
        return Image(disk_format=image.disk_format, properties=image.properties)

    @property
    def destination(self) -> Destination | None:
        """Where the request must go, if anywhere."""
        return self.request.destination

    @property
    def policy(self) -> Literal["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity", "fault-domain", ""]:
        """The policy of the request's server group, or nothing."""
        return "" if self.group is None else self.group.policy  # type: ignore[return-value]  # checked when stored

    def hint(self, name: str, default: str | None = None) -> str | None:
        """Return the first value of a scheduler hint, or ``default``."""
        values = self.hint_list(name)
        return values[0] if values else default

    def hint_list(self, name: str) -> list[str]:
        """Return all values of a scheduler hint; a single one is a list of one."""
        value = self.request.hints.get(name)
        if value is None:
            return []
        return [value] if isinstance(value, str) else list(value)
