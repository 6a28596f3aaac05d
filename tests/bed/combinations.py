"""The Placement and the schedulers of a cloud."""

from typing import Literal

import msgspec

Placement = Literal["upstream", "roost"]
Scheduler = Literal["nova", "roost", "both"]


class Combination(msgspec.Struct, frozen=True, kw_only=True):
    """A Placement and the schedulers that use it."""

    placement: Placement
    scheduler: Scheduler
    roosts: int = 1  # Roost's schedulers, if it has any; more than one need PostgreSQL

    @property
    def name(self) -> str:
        """A short name for tables and folders."""
        return f"{self.placement}-{self.scheduler}"

    @property
    def title(self) -> str:
        """A name for readers."""
        placement = {"upstream": "upstream Placement", "roost": "Roost's Placement"}[self.placement]
        scheduler = {"nova": "nova-scheduler", "roost": "Roost's scheduler", "both": "both schedulers"}[self.scheduler]
        return f"{placement} and {scheduler}"

    @property
    def has_nova_scheduler(self) -> bool:
        """Whether nova-scheduler runs."""
        return self.scheduler != "roost"

    @property
    def has_roost_scheduler(self) -> bool:
        """Whether Roost serves the queue."""
        return self.scheduler != "nova"

    @property
    def scheduler_count(self) -> int:
        """The number of consumers of the queue."""
        return self.has_nova_scheduler + self.roosts * self.has_roost_scheduler


REFERENCE = Combination(placement="upstream", scheduler="nova")
SUBJECTS = (
    Combination(placement="roost", scheduler="roost"),
    Combination(placement="upstream", scheduler="roost"),
)
ALL = {each.name: each for each in (REFERENCE, *SUBJECTS, Combination(placement="roost", scheduler="nova"))}
