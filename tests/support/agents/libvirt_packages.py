"""Find libvirt, QEMU and the Python binding for the tests of that driver, and install them where possible."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

BINDING = "libvirt-python==12.8.0"
DEBIAN = ("gcc", "pkg-config", "libvirt-dev", "libvirt-daemon", "libvirt-daemon-driver-qemu", "qemu-system-x86")
USER = "libvirt-qemu"  # libvirt's QEMU driver requires this user, although tests run QEMU as another one
QUIET_S = 600  # timeout of a command


def run(*words: str | Path) -> str:
    """Run a command; return its error in one line, or an empty string."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        result = subprocess.run(
            words, capture_output=True, text=True, env=environment, check=False, timeout=QUIET_S, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = [line for line in (result.stderr or result.stdout).splitlines() if line.strip()]
    return "" if result.returncode == 0 else (lines or [f"{words[0]} ended with {result.returncode}"])[-1]


def missing_packages() -> list[str]:
    """Return the Debian packages that are not installed."""
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    wanted = [*DEBIAN, *([] if headers.exists() else ["python3-dev"])]
    return [name for name in wanted if run("dpkg", "--status", name)]


def install_packages() -> str:
    """Install the missing Debian packages; return the error, or an empty string."""
    missing = missing_packages()
    if not missing:
        return ""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return f"{', '.join(missing)} cannot be installed without root and apt-get"
    print(f"installing {' '.join(missing)}")
    run("apt-get", "update")  # If this fails, old package lists may still work.
    return run("apt-get", "install", "--yes", "--no-install-recommends", *missing)


def install_binding() -> str:
    """Install the binding into this environment; return the error, or an empty string."""
    if not run(sys.executable, "-c", "import libvirt"):
        return ""
    print(f"building {BINDING}")
    pip: Sequence[str] = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    return run(*pip, "install", BINDING)


def main() -> None:
    """Install the packages that can be installed, and print which tests run and which are skipped."""
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
