"""A guest of libvirt that is to stop, on a link that is played."""

from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from roost.compute.drivers.libvirt.domain_xml import mark_of
from roost.compute.drivers.libvirt.driver import Libvirt
from roost.compute.drivers.libvirt.link import Guest
from roost.compute.drivers.libvirt.options import LibvirtOptions
from roost.model.work.agent_terms import HostTerms
from tests.support.agents.driver_doubles import spec_of
from tests.support.fleets.worlds import uuid_named


class LibvirtError(Exception):
    """What libvirt raises."""


class Domain:
    """A domain that runs, and can or cannot be asked to shut itself down."""

    def __init__(self, *, listens):
        self._listens, self.is_active, self.was_destroyed = listens, True, False

    def shutdown(self):
        """Shut down, or refuse to."""
        if not self._listens:
            raise LibvirtError("this function is not supported")
        self.is_active = False

    def isActive(self):  # noqa: N802  # as libvirt calls it
        """Say whether it runs."""
        return self.is_active


class Link:
    """A way to one domain."""

    error = LibvirtError

    def __init__(self, domain):
        self._domain = domain

    @contextmanager
    def asking(self, subject, kind):
        """Let errors be what they are."""
        yield

    def guest(self, uuid):
        """Give the guest."""
        mark = replace(mark_of(spec_of("guest"), "build", disk=""), is_complete=True)
        return Guest(mark=mark, xml="", is_active=self._domain.is_active, domain=self._domain)

    def stop(self, domain):
        """Stop the domain at once."""
        domain.was_destroyed, domain.is_active = domain.is_active, False


@pytest.mark.parametrize("listens", [True, False])
def test_a_guest_that_cannot_be_asked_to_shut_down_is_stopped_at_once(listens):
    domain, waited = Domain(listens=listens), []
    options = LibvirtOptions(uri="played:///", state=Path("guests"), images=Path("images"), shutdown_s=60.0)
    driver = Libvirt(options, terms=HostTerms(), link=Link(domain), wait=waited.append)
    driver.power(uuid_named("guest"), is_on=False)
    assert (domain.is_active, domain.was_destroyed, waited) == (False, not listens, [])
