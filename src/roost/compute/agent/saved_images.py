"""Saved images of shelved instances; those of deleted instances are dropped."""

from collections.abc import Collection, Mapping, Sequence

from roost.compute.driver import RAISED, Driver
from roost.compute.inventory.stale_allocations import Instances
from roost.errors import error_text, quote_value
from roost.model.names import is_uuid_form
from roost.model.work.standing import STANDINGS_MAX, Standing
from roost.observe import log


class SavedImages:
    """The saved images that the driver of a host keeps. One thread at a time uses this.

    Hosts may share images, and look at them at the same moment.

    Args:
        host: name of the service.
        driver: it has started.
        instances: look-up of instances.
    """

    def __init__(self, host: str, *, driver: Driver, instances: Instances) -> None:
        self._host, self._driver, self._instances = host, driver, instances
        self._told = ""  # problems of the last attempt

    def drop_deleted(self) -> list[str]:
        """Drop the images of deleted instances; return the uuids of these.

        An image that cannot be dropped is left for later; the log gives the reason, once.
        """
        dropped, problem = [], ""
        try:
            kept = _check_images(self._driver.saved_images())
            for at in range(0, len(kept), STANDINGS_MAX):
                asked = kept[at : at + STANDINGS_MAX]
                # Drop the images of each answer before the next request, which another, older database may answer.
                for uuid in find_deleted(asked, self._instances.standings(asked)):
                    lost = self._drop(uuid)
                    problem = problem or lost
                    dropped += [] if lost else [uuid]
        except RAISED as error:
            problem = error_text(error)
        if problem and problem != self._told:
            log.event("saved_images_stay", host=self._host, problem=problem)
        self._told = problem
        return dropped

    def _drop(self, uuid: str) -> str:
        """Drop one image; return the problem, if any."""
        try:
            self._driver.drop_saved_image(uuid)
        except RAISED as error:
            return error_text(error)
        log.event("saved_image_dropped", host=self._host, instance=uuid)
        return ""


def find_deleted(uuids: Collection[str], standings: Mapping[str, Standing]) -> list[str]:
    """Return the instances that are known to be deleted, in order.

    Unknown instances do not count: the database may be older than their images, or another one.
    """
    return [uuid for uuid in uuids if uuid in standings and standings[uuid].is_deleted]


def _check_images(told: object) -> Sequence[str]:
    """Return the uuids of instances whose images a driver keeps.

    Raises:
        TypeError: the driver returned no list of uuids.
    """
    if not isinstance(told, (list, tuple)):
        raise TypeError(f"saved_images of the driver returned {type(told).__name__}, no list of uuids")
    for each in told:
        if not isinstance(each, str) or not is_uuid_form(each):
            raise TypeError(f"saved_images of the driver returned {quote_value(each)}, which is no uuid")
    return sorted(set(told))
