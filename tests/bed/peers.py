"""The programs of OpenStack in the bed, in an environment of their own: ``python -m tests.bed.peers`` installs them."""

import os
from pathlib import Path

from tests.support.databases import mariadb
from tests.support.fleets.products import ROOT
from tests.support.servers import rabbitmq
from tests.support.servers.environments import create, python_with

ENVIRONMENT = ROOT / ".cache" / "bed"
REQUIREMENTS = (
    "nova==34.0.0",
    "openstack-placement==16.0.0",
    "keystone==30.0.0",
    "glance==33.0.0",
    "python-openstackclient==10.5.0",
    "osc-placement==4.9.1",
    "pymysql==1.2.4",
    "waitress==3.0.2",
    "fixtures==4.3.2",
    "requests==2.34.2",
    "sqlalchemy==2.0.58",
)
VARIABLE = "ROOST_BED"
HOW_TO_INSTALL = f"OpenStack is not installed: run `make bed-peers`, or let {VARIABLE} name a Python that has it"


def python() -> Path | None:
    """Return the Python of the environment, or None."""
    return python_with("nova.version, placement, keystone, glance", ENVIRONMENT, named=os.environ.get(VARIABLE))


def problems() -> list[str]:
    """Return the parts that this machine lacks, one sentence each."""
    missing = [] if python() is not None else [HOW_TO_INSTALL]
    missing += [rabbitmq.MISSING] if rabbitmq.IS_MISSING else []
    return missing + ([mariadb.MISSING] if mariadb.SERVE is None or mariadb.INSTALL is None else [])


def install() -> None:
    """Create the environment, unless it exists."""
    if (found := python()) is not None:
        print(f"{found} has OpenStack")
        return
    create(ENVIRONMENT, REQUIREMENTS)


if __name__ == "__main__":
    install()
