"""The programs of the clusters: ``python -m tests.ha.peers`` installs them.

Patroni comes from PyPI, into an environment of its own. The rest comes from the distribution.
"""

import sys
from pathlib import Path

from tests.support.debian_packages import install as install_packages
from tests.support.fleets.products import ROOT
from tests.support.servers.environments import create, python_with

ENVIRONMENT = ROOT / ".cache" / "patroni"
REQUIREMENTS = ("patroni[etcd3]==4.1.5", "psycopg2-binary==2.9.13")
PACKAGES = ("postgresql", "etcd-server", "mariadb-server-core", "mariadb-client-core", "galera-4", "iptables")
HOW_TO_INSTALL = "`make ha-peers` installs it"


def patroni_python() -> Path | None:
    """Return the Python of the environment with Patroni, or None."""
    return python_with("patroni, psycopg2", ENVIRONMENT, named=None)


def main() -> int:
    """Install everything; print the problem if packages are missing."""
    if patroni_python() is None:
        create(ENVIRONMENT, REQUIREMENTS)
    problem = install_packages(*PACKAGES)
    print(problem or f"{', '.join(PACKAGES)} are installed")
    return bool(problem)


if __name__ == "__main__":
    sys.exit(main())
