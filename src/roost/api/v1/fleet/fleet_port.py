"""The interface of the reader of the fleet beside the deciding thread."""

from typing import Protocol

from roost.api.v1.fleet.fleet_file import FleetFile
from roost.api.v1.fleet.fleet_frames import FleetFrames


class FleetPort(Protocol):
    """Snapshots of the fleet, and their differences."""

    @property
    def frames(self) -> FleetFrames:
        """The differences."""

    async def newest(self, *, is_fresh: bool = False) -> FleetFile:
        """Return the newest snapshot; call this on the event loop.

        Args:
            is_fresh: whether to wait for the end of the present or the next reading.

        Raises:
            Unavailable: it takes too long, or the server is stopping.
        """
