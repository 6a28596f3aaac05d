"""Errors of builds: their meaning to the server, and the undoing of a failed build."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from roost.compute.drivers.libvirt.link import Link
from roost.errors import BuildAborted, BuildFailed, Unavailable, first_line
from roost.observe import log


@contextmanager
def build_errors(link: Link, host: str, uuid: str) -> Iterator[None]:
    """Turn errors of a build into ``BuildFailed``, or ``BuildAborted`` if no other host can succeed.

    Args:
        link: the connection to libvirt.
        host: name of the host.
        uuid: uuid of the guest.
    """
    try:
        yield
    except (Unavailable, OSError, ValueError, link.error) as error:
        kind = BuildAborted if link.is_bad_input(error) else BuildFailed
        raise kind(f"guest {uuid} cannot be built or moved on {host}: {first_line(error)}") from error


@contextmanager
def undo_on_error(link: Link, undo: Callable[[], None]) -> Iterator[None]:
    """Call ``undo`` if the body fails; an error of ``undo`` itself is logged."""
    try:
        yield
    except (BuildFailed, BuildAborted, Unavailable, OSError, ValueError, link.error):
        try:
            undo()
        except (Unavailable, OSError, link.error) as error:
            log.fault("a partly built guest remains", error)
        raise
