"""Find libvirt, QEMU and the Python binding for the tests of that driver, and install them where possible."""

import os
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from tests.support.debian_packages import install, run

BINDING = "libvirt-python==12.8.0"
DEBIAN = ("gcc", "pkg-config", "libvirt-dev", "libvirt-daemon", "libvirt-daemon-driver-qemu", "qemu-system-x86")
USER = "libvirt-qemu"  # libvirt's QEMU driver requires this user, although tests run QEMU as another one


def debian_packages() -> list[str]:
    """Return the Debian packages that the driver and its binding need."""
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    return [*DEBIAN, *([] if headers.exists() else ["python3-dev"])]


def install_binding() -> str:
    """Install the binding into this environment; return the error, or an empty string."""
    if not run(sys.executable, "-c", "import libvirt"):
        return ""
    print(f"building {BINDING}")
    pip: Sequence[str] = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    return run(*pip, "install", BINDING)


def main() -> None:
    """Install the packages that can be installed, and print which tests run and which are skipped."""
    packages = install(*debian_packages())
    if not packages and os.geteuid() == 0 and run("getent", "passwd", USER):
        packages = run("useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", USER)
    binding = install_binding()
    if binding:
        print(f"There is no binding of libvirt, so the tests of its driver are skipped: {packages or binding}")
    elif packages:
        print(f"The binding of libvirt is there; tests that boot guests are skipped if QEMU is not: {packages}")
    else:
        print("Libvirt, its binding and QEMU are there, and the tests of the driver run")


if __name__ == "__main__":
    main()
