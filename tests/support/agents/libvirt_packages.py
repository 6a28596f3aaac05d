"""Libvirt, QEMU and the binding for the tests of that driver: looked for, and installed where that is allowed."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

BINDING = "libvirt-python==12.8.0"
DEBIAN = ("gcc", "pkg-config", "libvirt-dev", "libvirt-daemon", "libvirt-daemon-driver-qemu", "qemu-system-x86")
USER = "libvirt-qemu"  # whom libvirt's driver for QEMU wants to know, although tests run QEMU as somebody else
QUIET_S = 600  # that a command may take


def run(*words: str | Path) -> str:
    """Run a command; return what went wrong, in a line, or nothing."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, env=environment, check=False, timeout=QUIET_S, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return "" if done.returncode == 0 else (said or [f"{words[0]} ended with {done.returncode}"])[-1]


def missing_packages() -> list[str]:
    """Return the packages of Debian that are not installed."""
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    wanted = [*DEBIAN, *([] if headers.exists() else ["python3-dev"])]
    return [name for name in wanted if run("dpkg", "--status", name)]


def install_packages() -> str:
    """Install what is missing of Debian's packages; return why that did not work, or nothing."""
    missing = missing_packages()
    if not missing:
        return ""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return f"{', '.join(missing)} cannot be installed without root and apt-get"
    print(f"installing {' '.join(missing)}")
    run("apt-get", "update")  # Old lists may do, too.
    return run("apt-get", "install", "--yes", "--no-install-recommends", *missing)


def install_binding() -> str:
    """Install the binding into this environment; return why that did not work, or nothing."""
    if not run(sys.executable, "-c", "import libvirt"):
        return ""
    print(f"building {BINDING}")
    pip: Sequence[str] = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    return run(*pip, "install", BINDING)


def main() -> None:
    """Install what can be had, and say what there is and what is skipped."""
    packages = install_packages()
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
