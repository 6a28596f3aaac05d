"""The checks of a process: health, readiness, and the application that serves their paths."""

from collections.abc import Callable, Collection, Sequence

from roost.api.health.probes import HealthCheck, Probes
from roost.api.health.readiness import Readiness
from roost.api.server.supervisor import ParentPipe
from roost.model.settings.roost_settings import Settings
from roost.observe import exposition
from roost.observe.families import Area
from roost.placement.deciding_thread import Serving
from roost.placement.last_success import LastSuccess


class Checks:
    """The checks of a process.

    Args:
        serving: its deciding thread.
        settings: the current settings.
        conductor: the turns of the conductor, if readiness depends on them.
    """

    def __init__(self, serving: Serving, *, settings: Callable[[], Settings], conductor: LastSuccess | None) -> None:
        self._serving = serving
        self.health = HealthCheck(serving)
        self.readiness = Readiness(serving, limits=lambda: settings().monitoring, conductor=conductor)

    def probes(
        self,
        *,
        areas: Collection[Area] = exposition.SERVER_AREAS,
        others: Sequence[str] = (),
        note: Callable[[], str] = lambda: "",
    ) -> Probes:
        """Return the application of the paths; the arguments are those of ``Probes``."""
        return Probes(self.health, self._serving, readiness=self.readiness, areas=areas, others=others, note=note)

    async def report(self, parent: ParentPipe | None) -> None:
        """Run the checks for the metrics, and report them to the supervisor, if any."""
        ready = await self.readiness()
        if parent is not None:
            parent.report(await self.health(), unready=ready.problem)
