"""Install packages of the distribution that tests need, where possible. As a program: the servers beside Roost."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

# For tests of alerts and board, proxies, message queue, databases of Nova, and dashboard, in this order.
# Without recommended packages, Chromium would have no font.
SERVERS = (
    "prometheus",
    "nginx-light",
    "haproxy",
    "rabbitmq-server",
    "mariadb-server-core",
    "mariadb-client-core",
    # A node of a cluster gets its first data by a program of this package; galera-4 comes with it.
    "mariadb-server",
    "rsync",
    "chromium",
    "fonts-dejavu-core",
)
# Debian has servers in folders that are not in the PATH of users.
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
HOW_TO_INSTALL = "`make servers` installs it"
TIMEOUT_S = 600  # of a command
_LOCK = Path(__file__).parents[2] / ".cache" / "apt.lock"


def find_program(name: str) -> str | None:
    """Return the path of a program or server; None: it is not installed."""
    return shutil.which(name, path=_PATH)


def run(*words: str | Path) -> str:
    """Run a command; return its error in one line, or an empty string."""
    # In runlevel 1, Debian's packages do not start their services.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    try:
        result = subprocess.run(
            words, capture_output=True, text=True, env=environment, check=False, timeout=TIMEOUT_S, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = [line for line in (result.stderr or result.stdout).splitlines() if line.strip()]
    return "" if result.returncode == 0 else (lines or [f"{words[0]} ended with {result.returncode}"])[-1]


def install(*packages: str) -> str:
    """Install the packages that are missing; return the error, or an empty string."""
    missing = [name for name in packages if run("dpkg", "--status", name)]
    if not missing:
        return ""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return f"{', '.join(missing)} cannot be installed without root and apt-get"
    _LOCK.parent.mkdir(exist_ok=True)
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Several targets of make may install at the same time.
        print(f"installing {' '.join(missing)}", flush=True)
        run("apt-get", "update")  # If this fails, old package lists may still work.
        return run("apt-get", "install", "--yes", "--no-install-recommends", *missing)


def main() -> None:
    """Install the servers, and print which tests are skipped."""
    problem = install(*SERVERS)
    print(f"tests on missing servers are skipped: {problem}" if problem else f"{', '.join(SERVERS)} are installed")


if __name__ == "__main__":
    main()
