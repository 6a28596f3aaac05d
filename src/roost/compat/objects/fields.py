"""Counterpart of ``nova.objects.fields``: names of architectures, hypervisors, modes and policies."""

from typing import Any, ClassVar

from roost.compat import exception
from roost.scheduler.framework.image_properties import architecture, hypervisor, is_architecture, vm_mode


class _Names:
    """A set of names with canonical spellings."""

    ALL: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def _spell(cls, name: str | None) -> str | None:
        return name

    @classmethod
    def is_valid(cls, name: str | None) -> bool:
        """Return whether a name is known and in its canonical spelling."""
        return name in cls.ALL

    @classmethod
    def canonicalize(cls, name: str | None) -> str | None:
        """Return the canonical spelling of a name.

        Raises:
            InvalidName: the name is unknown.
        """
        spelling = cls._spell(name)
        if spelling is not None and not cls._is_known(spelling):
            raise exception.InvalidName(what=cls.__name__, name=name)
        return spelling

    @classmethod
    def _is_known(cls, name: str) -> bool:
        return name in cls.ALL


class Architecture(_Names):
    """Processor architectures."""

    AARCH64, ARMV7, I686, PPC64, PPC64LE, S390X, X86_64 = (
        "aarch64",
        "armv7l",
        "i686",
        "ppc64",
        "ppc64le",
        "s390x",
        "x86_64",
    )
    ALL = (AARCH64, ARMV7, I686, PPC64, PPC64LE, S390X, X86_64)

    @classmethod
    def _spell(cls, name: str | None) -> str | None:
        return architecture(name)

    @classmethod
    def _is_known(cls, name: str) -> bool:
        return is_architecture(name)


class HVType(_Names):
    """Hypervisors."""

    BAREMETAL, BHYVE, DOCKER, FAKE, HYPERV, IRONIC, KQEMU, KVM, LXC, LXD, OPENVZ, PARALLELS, PHYP = (
        "baremetal",
        "bhyve",
        "docker",
        "fake",
        "hyperv",
        "ironic",
        "kqemu",
        "kvm",
        "lxc",
        "lxd",
        "openvz",
        "parallels",
        "phyp",
    )
    QEMU, TEST, UML, VBOX, VIRTUOZZO, VMWARE, XEN, ZVM, PRSM = (
        "qemu",
        "test",
        "uml",
        "vbox",
        "vz",
        "vmware",
        "xen",
        "zvm",
        "prsm",
    )
    ALL = (
        BAREMETAL,
        BHYVE,
        DOCKER,
        FAKE,
        HYPERV,
        IRONIC,
        KQEMU,
        KVM,
        LXC,
        LXD,
        OPENVZ,
        PARALLELS,
        PHYP,
        QEMU,
        TEST,
        UML,
        VBOX,
        VIRTUOZZO,
        VMWARE,
        XEN,
        ZVM,
        PRSM,
    )

    @classmethod
    def _spell(cls, name: str | None) -> str | None:
        return hypervisor(name)


class VMMode(_Names):
    """Modes of virtual machines."""

    HVM, XEN, UML, EXE = "hvm", "xen", "uml", "exe"
    ALL = (HVM, XEN, UML, EXE)

    @classmethod
    def _spell(cls, name: str | None) -> str | None:
        return vm_mode(name)


class CPUAllocationPolicy:
    """Policies for dedicated and shared processors."""

    DEDICATED, SHARED, MIXED = "dedicated", "shared", "mixed"
    ALL = (DEDICATED, SHARED, MIXED)


class CPUThreadAllocationPolicy:
    """Policies for the threads of a core."""

    PREFER, ISOLATE, REQUIRE = "prefer", "isolate", "require"
    ALL = (PREFER, ISOLATE, REQUIRE)


class PCINUMAAffinityPolicy:
    """Policies for the NUMA affinity of PCI devices."""

    REQUIRED, LEGACY, PREFERRED, SOCKET = "required", "legacy", "preferred", "socket"
    ALL = (REQUIRED, LEGACY, PREFERRED, SOCKET)


def __getattr__(name: str) -> Any:
    """Raise an error for a field that Roost does not have."""
    raise AttributeError(f"nova.objects.fields has no {name} here; Roost has only names of architectures and policies")
