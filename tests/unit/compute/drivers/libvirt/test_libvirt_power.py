"""Stopping a libvirt guest over a fake link."""

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
    """The error of libvirt."""


class Domain:
    """A running domain that may or may not support shutdown."""

    def __init__(self, *, can_shut_down):
        self._can_shut_down, self.is_active, self.was_destroyed = can_shut_down, True, False

    def shutdown(self):
        """Shut down, or refuse to."""
        if not self._can_shut_down:
            raise LibvirtError("this function is not supported")
        self.is_active = False

    def isActive(self):  # noqa: N802  # as libvirt calls it
        """Return whether the domain is running."""
        return self.is_active


class Link:
    """A link to one domain."""

    error = LibvirtError

    def __init__(self, domain):
        self._domain = domain

    @contextmanager
    def convert_errors(self, subject, kind):
        """Pass errors on unchanged."""
        yield

    def guest(self, uuid):
        """Return the guest."""
        mark = replace(mark_of(spec_of("guest"), "build", disk=""), is_complete=True)
        return Guest(mark=mark, xml="", is_active=self._domain.is_active, domain=self._domain)

    def stop(self, domain):
        """Stop the domain at once."""
        domain.was_destroyed, domain.is_active = domain.is_active, False


@pytest.mark.parametrize("can_shut_down", [True, False])
def test_guest_without_shutdown_support_is_destroyed_at_once(can_shut_down):
    domain, waits = Domain(can_shut_down=can_shut_down), []
    options = LibvirtOptions(uri="played:///", state=Path("guests"), images=Path("images"), shutdown_s=60.0)
    driver = Libvirt(options, terms=HostTerms(), link=Link(domain), wait=waits.append)
    driver.power(uuid_named("guest"), is_on=False)
    assert (domain.is_active, domain.was_destroyed, waits) == (False, not can_shut_down, [])
