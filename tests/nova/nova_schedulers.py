"""The real nova-scheduler, from the environment of the reference, on the rows of a cloud."""

import os
import signal
import subprocess
import uuid
from contextlib import contextmanager
from pathlib import Path

import amqp

from tests.differential.scheduler import nova
from tests.nova.nova_clouds import NovaCloud, open_sqlite_nova
from tests.nova.rpc_callers import NOVA, Caller
from tests.support.missing_programs import skip_test
from tests.support.servers.nova_database import shared_template
from tests.support.wait import wait_until


def write_scheduler_conf(cloud, broker, folder: Path) -> Path:
    """Write a nova.conf for programs of Nova that use the running Roost as their Placement; return its path."""
    address = f"{cloud.server.address}/placement"
    conf = folder / "nova-scheduler.conf"
    conf.write_text(
        cloud.nova_conf.read_text().replace(cloud.broker.url, broker.url)
        + f"[placement]\nauth_type = admin_token\nendpoint = {address}\nendpoint_override = {address}\ntoken = admin\n"
        + f"[oslo_concurrency]\nlock_path = {folder}\n"
    )
    return conf


@contextmanager
def nova_scheduler(cloud, broker, folder: Path):
    """Run nova-scheduler on another broker than that of Roost; yield a caller of it.

    Both have the same databases and the same Placement server, which is Roost.
    """
    program = nova.python()
    assert program is not None, nova.HOW_TO_INSTALL
    conf = write_scheduler_conf(cloud, broker, folder)
    log = folder / f"nova-scheduler-{uuid.uuid4().hex[:4]}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program.with_name("nova-scheduler"), "--config-file", conf],
            stdout=output,
            stderr=output,
            # Among equal hosts, its choice follows the order of a set.
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PYTHONHASHSEED": "0"},
            start_new_session=True,
        )
        try:
            wait_until(lambda: _is_served(broker, process, log))
            caller = Caller(broker, NOVA, "scheduler")
            yield caller
            caller.close()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def open_duel(broker, paths, name, options):
    """Yield a cloud that Roost serves, and a caller of nova-scheduler on the same cloud.

    Args:
        broker: a virtual host of it is for each scheduler.
        paths: pytest's factory of folders.
        name: of the folder.
        options: lines of nova.conf by section.
    """
    if nova.python() is None:
        skip_test(nova.HOW_TO_INSTALL)
    folder = paths.mktemp(name)
    database, sections = open_sqlite_nova(folder, schema=shared_template(paths))
    names = [f"{kind}-{uuid.uuid4().hex[:8]}" for kind in ("roost", "nova")]
    ours, theirs = map(broker.add_virtual_host, names)
    sections["scheduler"] = {"workers": 1}
    for section, lines in options.items():
        sections[section] = sections.get(section, {}) | lines
    cloud = NovaCloud(folder, ours, database, options=sections)
    with cloud.served(), nova_scheduler(cloud, theirs, folder) as caller:
        cloud.callers = (cloud.caller, caller)
        yield cloud, caller
    cloud.close()


def _is_served(broker, process, log):
    assert process.poll() is None, log.read_text()[-3000:]
    connection = broker.connect()
    try:
        return connection.channel().queue_declare("scheduler", passive=True).consumer_count > 0
    except amqp.exceptions.NotFound:
        return False
    finally:
        connection.close()
