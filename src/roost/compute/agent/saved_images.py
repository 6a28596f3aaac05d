"""Saved images of shelved instances; those of deleted instances are dropped."""

from collections.abc import Collection, Mapping, Sequence

from roost.compute.driver import DRIVER_ERRORS, Driver
from roost.compute.inventory.stale_allocations import Instances
from roost.errors import error_text, quote_value
from roost.model.names import is_uuid_form
from roost.model.work.standing import STANDINGS_MAX, Standing
from roost.observe import log


class SavedImages:
    """The saved images that the driver of a host keeps. For one thread at a time.

    Hosts may share images, and check them at the same moment.

    Args:
        host: name of the service.
        driver: a started driver.
        instances: look-up of instances.
    """

    def __init__(self, host: str, *, driver: Driver, instances: Instances) -> None:
        self._host, self._driver, self._instances = host, driver, instances
        self._logged_problem = ""  # of the last attempt; empty: none

    def drop_deleted(self) -> list[str]:
        """Drop the images of deleted instances; return the uuids of the instances.

        An image that cannot be dropped stays until the next call. The reason is logged once.
        """
        dropped, problem = [], ""
        try:
            kept = _check_images(self._driver.saved_images())
            for at in range(0, len(kept), STANDINGS_MAX):
                batch = kept[at : at + STANDINGS_MAX]
                # Drop the images before the next look-up, which a restored, older database may answer.
                for uuid in find_deleted(batch, self._instances.standings(batch)):
                    failure = self._drop(uuid)
                    problem = problem or failure
                    dropped += [] if failure else [uuid]
        except DRIVER_ERRORS as error:
            problem = error_text(error)
        if problem and problem != self._logged_problem:
            log.event("saved_images_stay", host=self._host, problem=problem)
        self._logged_problem = problem
        return dropped

    def _drop(self, uuid: str) -> str:
        """Drop one image; return the problem, if any."""
        try:
            self._driver.drop_saved_image(uuid)
        except DRIVER_ERRORS as error:
            return error_text(error)
        log.event("saved_image_dropped", host=self._host, instance=uuid)
        return ""


def find_deleted(uuids: Collection[str], standings: Mapping[str, Standing]) -> list[str]:
    """Return the instances that are known to be deleted, in order.

    Unknown instances do not count: the database may be older than their images, or a different one.
    """
    return [uuid for uuid in uuids if uuid in standings and standings[uuid].is_deleted]


def _check_images(value: object) -> Sequence[str]:
    """Check a driver's list of instances with saved images; return their uuids, sorted.

    Raises:
        TypeError: the value is not a list of uuids.
    """
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"saved_images of the driver returned {type(value).__name__}, not a list of UUIDs")
    for each in value:
        if not isinstance(each, str) or not is_uuid_form(each):
            raise TypeError(f"saved_images of the driver returned {quote_value(each)}, which is not a UUID")
    return sorted(set(value))
