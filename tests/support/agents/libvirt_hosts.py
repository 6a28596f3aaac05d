"""Hosts with the libvirt driver: on libvirt's test driver, which runs no guests, and on QEMU without KVM."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import weakref
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from xml.etree.ElementTree import fromstring

import pytest

from roost.compute.drivers.libvirt.driver import Libvirt, make
from roost.compute.drivers.libvirt.link import Link
from roost.compute.drivers.libvirt.options import read_libvirt_options
from roost.model.work.agent_terms import HostTerms
from tests.support.agents import libvirt_xml
from tests.support.agents.driver_doubles import spec_of
from tests.support.fleets.products import environ

HOW_TO_INSTALL = "run `make libvirt`, which lists missing packages"
_PLAIN = "<node><cpu><mhz>2000</mhz></cpu><memory>8388608</memory></node>"
# QEMU runs as the user of the tests, without features that containers forbid.
_QEMU_SETTINGS = """
user = "root"
group = "root"
namespaces = []
cgroup_controllers = []
security_driver = "none"
remember_owner = 0
stdio_handler = "file"
"""


def libvirt_module():
    """Return the libvirt module, or skip the test with the reason."""
    if importlib.util.find_spec("libvirt") is None:
        pytest.skip(f"libvirt's binding is not installed: {HOW_TO_INSTALL}")
    make({}, HostTerms())  # This also starts libvirt's event loop.
    import libvirt

    return libvirt


class Faulty:
    """A connection on which the next call of one function fails."""

    def __init__(self, connection, *, call, error, is_done=False):
        self._connection, self._call, self._error, self._is_done = connection, call, error, is_done

    def __getattr__(self, name):
        found = getattr(self._connection, name)
        if name != self._call or self._error is None:
            return found

        def fail(*words):
            error, self._error = self._error, None
            if self._is_done:
                found(*words)
            raise error

        return fail


class FaultyDomains(Faulty):
    """A connection on which the next call of one function fails, on itself or on a domain that it returns."""

    def __getattr__(self, name):
        found = super().__getattr__(name)
        if name not in ("lookupByUUIDString", "defineXML"):
            return found
        return lambda *words: Faulty(found(*words), call=self._call, error=self._error, is_done=self._is_done)


class Cards:
    """The devices of a host in libvirt: GPUs with mediated devices, and others.

    Args:
        gpus: by address, the number of mediated devices of each type.
        others: other node devices, as XML.
    """

    def __init__(self, gpus, *others):
        self._gpus, self._others = gpus, others
        self.parts = {}  # by uuid of the mediated device: address of its GPU, and type

    def __call__(self, connection):
        """Return a connection with these devices, which delegates all other calls to another connection."""
        return _CardConnection(connection, self)

    def texts(self):
        """Return the XML of the node devices by name."""
        found = {
            libvirt_xml.name_of(address): libvirt_xml.pci(
                address,
                "10de",
                "0fff",
                types=[(kind, total - [*self.parts.values()].count((address, kind))) for kind, total in types.items()],
            )
            for address, types in self._gpus.items()
        }
        for uuid, (address, kind) in self.parts.items():
            found[f"mdev_{uuid}"] = libvirt_xml.mdev(uuid, libvirt_xml.name_of(address), kind)
        return found | {f"other-{number}": text for number, text in enumerate(self._others)}

    def add(self, xml):
        """Create a mediated device on a GPU."""
        device = fromstring(xml)
        uuid, kind = device.findtext("capability/uuid"), device.find("capability/type").get("id")
        (address,) = [each for each in self._gpus if libvirt_xml.name_of(each) == device.findtext("parent")]
        assert [*self.parts.values()].count((address, kind)) < self._gpus[address][kind]
        assert uuid not in self.parts
        self.parts[uuid] = (address, kind)


class _CardConnection:
    def __init__(self, connection, cards):
        self._connection, self._cards = connection, cards
        self.nodeDeviceCreateXML = cards.add

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def listAllDevices(self):  # noqa: N802  # As libvirt calls it.
        return [SimpleNamespace(XMLDesc=lambda text=text: text) for text in self._cards.texts().values()]

    def nodeDeviceLookupByName(self, name):  # noqa: N802  # As libvirt calls it.
        uuid = name.removeprefix("mdev_").replace("_", "-")
        return SimpleNamespace(destroy=lambda: self._cards.parts.pop(uuid))


class LibvirtRig:
    """Hosts on libvirt's test driver that share a folder; ``cards`` are the devices of each host."""

    name = "libvirt"
    can_live_migrate = False

    def __init__(self, *, cards=lambda connection: connection, **options):
        self._libvirt, self._cards = libvirt_module(), cards
        root = Path(tempfile.mkdtemp(prefix="roost-libvirt-"))
        weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
        (root / "node.xml").write_text(_PLAIN)
        (root / "images").mkdir()
        (root / "images" / "cirros").write_bytes(b"cirros" * 100)
        self.folder = root
        self._options = {
            "uri": f"test://{root}/node.xml",
            "state": str(root / "state"),
            "images": str(root / "images"),
            **options,
        }
        self._connections, self._drivers = {}, {}

    def driver(self, host="host-a"):
        """Return the driver of a host."""
        if host not in self._drivers:
            # Each connection to a file is a separate host, and outlives the agent.
            if host not in self._connections:
                self._connections[host] = self._cards(self._libvirt.open(self._options["uri"]))
            self._drivers[host] = self._libvirt_driver(self._connections[host])
            self._drivers[host].start(host)
        return self._drivers[host]

    def restarted(self, host="host-a"):
        """Return the driver of a host after a restart of its agent."""
        self._drivers.pop(host)
        return self.driver(host)

    def failing(self, action, kind, host="host-a"):
        """Return the driver of a host on which the next call of an action fails."""
        error = self._libvirt.libvirtError("it went wrong")
        error.err = (self._libvirt.VIR_ERR_XML_ERROR if kind == "aborted" else self._libvirt.VIR_ERR_INTERNAL_ERROR,)
        self.driver(host)
        call = {"prepare": "lookupByUUIDString"}.get(action, "defineXML")
        faulty = Faulty(
            self._connections[host],
            call=call,
            is_done=kind == "crash",
            error=RuntimeError(f"{action} broke off") if kind == "crash" else error,
        )
        self._drivers[host] = self._libvirt_driver(faulty)
        self._drivers[host].start(host)
        return self._drivers[host]

    def dying(self, call, error, *, is_done, host="host-a"):
        """Return the driver of a host on which a call of libvirt or of a domain raises an error that ends the agent."""
        self.driver(host)
        self._drivers[host] = self._libvirt_driver(
            FaultyDomains(self._connections[host], call=call, error=error, is_done=is_done)
        )
        self._drivers[host].start(host)
        return self._drivers[host]

    def texts(self, host="host-a"):
        """Return the XML of all domains of a host."""
        return [domain.XMLDesc() for domain in self._connections[host].listAllDomains()]

    def beside(self, other, host="host-a"):
        """Return the driver of another host that shares the libvirt of this one."""
        self._connections[other] = self._connections[host]
        return self.driver(other)

    def edit(self, uuid, pattern, text, *, host="host-a", is_copy=False):
        """Edit the XML of a domain, as an operator may do by hand, or define the result as another domain."""
        connection = self._connections[host]
        domain = connection.lookupByUUIDString(uuid)
        xml = domain.XMLDesc(self._libvirt.VIR_DOMAIN_XML_INACTIVE)
        edited = re.sub(pattern, text, xml, flags=re.DOTALL)
        assert edited != xml
        if not is_copy:
            domain.destroy()
        connection.defineXML(edited)

    def spec(self, name="guest", host="host-a", **more):
        """Return the spec of a guest that the driver of a host can run."""
        return spec_of(name, host, **more)

    def _libvirt_driver(self, connection):
        link = Link(self._libvirt, self._options["uri"], connect=lambda _: connection)
        return Libvirt(read_libvirt_options(self._options), terms=HostTerms(), link=link, wait=lambda _: None)


@contextmanager
def short_folder():
    """Yield a folder with a short path, because the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="roost-", dir="/tmp") as folder:
        yield Path(folder)


def qemu_uri(folder):
    """Return the URI of a private QEMU in a folder for this process, or skip the test with the reason."""
    libvirt, uri = libvirt_module(), _qemu_in(folder)
    try:
        libvirt.open(uri).close()
    except libvirt.libvirtError as error:
        pytest.skip(f"libvirt cannot run QEMU here: {error}; {HOW_TO_INSTALL}")
    return uri


def qemu_uri_elsewhere(folder):
    """Return the URI of a private QEMU for another process, because a process can open only one."""
    libvirt_module()
    name = f"{libvirt_module.__module__} import {libvirt_module.__name__}"
    script = f"import sys; from {name} as module; module().open(sys.argv[1]).close()"
    command = [sys.executable, "-c", script, _qemu_in(folder / "tried")]
    trial = subprocess.run(command, env=environ(), capture_output=True, text=True, check=False)
    if trial.returncode:
        pytest.skip(f"libvirt cannot run QEMU here: {trial.stderr.splitlines()[-1]}; {HOW_TO_INSTALL}")
    return _qemu_in(folder / "own")


def _qemu_in(folder):
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip(f"there is no qemu-system-x86_64: {HOW_TO_INSTALL}")
    (folder / "etc").mkdir(parents=True)
    (folder / "etc" / "qemu.conf").write_text(_QEMU_SETTINGS if os.geteuid() == 0 else "")
    return f"qemu:///embed?root={folder}"


def boot_sector(text):
    """Return a boot sector of 512 bytes that writes a text to the first serial port and then halts."""
    code = bytearray.fromhex("31c0 8ed8 fc be0000")  # xor ax, ax; mov ds, ax; cld; mov si, the text
    loop = len(code)
    code += bytes.fromhex("ac 08c0 7400")  # lodsb; or al, al; jz the end
    jump = len(code)
    code += bytes.fromhex("baf803 ee")  # mov dx, the first serial port; out dx, al
    code += bytes([0xEB, (loop - len(code) - 2) % 256])  # jmp the loop
    code[jump - 1] = len(code) - jump
    code += bytes.fromhex("f4 ebfd")  # the end: hlt; jmp the end
    code[6:8] = (0x7C00 + len(code)).to_bytes(2, "little")
    code += text.encode("ascii") + b"\0"
    return bytes(code.ljust(510, b"\0") + b"\x55\xaa")
