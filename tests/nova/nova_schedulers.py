"""The real nova-scheduler, from the environment of the reference, on the rows of a cloud."""

import os
import signal
import subprocess
import uuid
from contextlib import contextmanager
from pathlib import Path

import amqp

from roost.nova.rpc.broker_options import BrokerOptions
from tests.differential.scheduler import nova
from tests.nova.rpc_callers import Caller
from tests.support.wait import wait_until


def open_caller(broker):
    """Return a caller of the topic ``scheduler``."""
    return Caller(broker, BrokerOptions(brokers=(), control_exchange="nova", host="one"), "scheduler")


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
            caller = open_caller(broker)
            yield caller
            caller.close()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _is_served(broker, process, log):
    assert process.poll() is None, log.read_text()[-3000:]
    connection = broker.connect()
    try:
        return connection.channel().queue_declare("scheduler", passive=True).consumer_count > 0
    except amqp.exceptions.NotFound:
        return False
    finally:
        connection.close()
