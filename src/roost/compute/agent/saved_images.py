"""Images that instances were saved as when they were shelved: those of deleted ones are dropped."""

from collections.abc import Collection, Mapping, Sequence

from roost.compute.driver import RAISED, Driver
from roost.compute.inventory.stale_allocations import Instances
from roost.errors import error_text, quote_value
from roost.model.names import is_uuid_form
from roost.model.work.standing import ASKED_MAX, Standing
from roost.observe import log


class SavedImages:
    """Images that instances were saved as, as the driver of a host keeps them; one thread at a time asks.

    Hosts may share them, and look at the same moment.

    Args:
        host: name of the service.
        driver: has begun to work for the host.
        instances: knows what became of instances.
    """

    def __init__(self, host: str, *, driver: Driver, instances: Instances) -> None:
        self._host, self._driver, self._instances = host, driver, instances
        self._told = ""  # what went wrong the last time

    def drop_deleted(self) -> list[str]:
        """Drop the images of instances that are deleted, and name those.

        What cannot be dropped now is left for later, and the log says why unless it said so the last time.
        """
        dropped, problem = [], ""
        try:
            kept = _checked(self._driver.saved_images())
            for at in range(0, len(kept), ASKED_MAX):
                asked = kept[at : at + ASKED_MAX]
                # Nothing is asked between an answer and what follows from it: by the next answer another, older
                # database may be there.
                for uuid in deleted(asked, self._instances.standings(asked)):
                    lost = self._dropped(uuid)
                    problem = problem or lost
                    dropped += [] if lost else [uuid]
        except RAISED as error:
            problem = error_text(error)
        if problem and problem != self._told:
            log.event("saved_images_stay", host=self._host, problem=problem)
        self._told = problem
        return dropped

    def _dropped(self, uuid: str) -> str:
        """Drop one image, and say what went wrong; the others are no worse for it."""
        try:
            self._driver.drop_saved_image(uuid)
        except RAISED as error:
            return error_text(error)
        log.event("saved_image_dropped", host=self._host, instance=uuid)
        return ""


def deleted(uuids: Collection[str], standings: Mapping[str, Standing]) -> list[str]:
    """Return which instances are known to be deleted, in their order.

    Those unknown are none: the database may be older than their images, or another one.
    """
    return [uuid for uuid in uuids if uuid in standings and standings[uuid].is_deleted]


def _checked(told: object) -> Sequence[str]:
    """Return of which instances a driver told that it keeps images.

    Raises:
        TypeError: it is no list of uuids.
    """
    if not isinstance(told, (list, tuple)):
        raise TypeError(f"saved_images of the driver returned {type(told).__name__}, no list of uuids")
    for each in told:
        if not isinstance(each, str) or not is_uuid_form(each):
            raise TypeError(f"saved_images of the driver returned {quote_value(each)}, which is no uuid")
    return sorted(set(told))
