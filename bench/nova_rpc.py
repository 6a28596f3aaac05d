"""Requests over the message queue of Nova, beside nova-scheduler: ``python -m bench.nova_rpc --hosts 3 503 5000``.

For each number of hosts, starts a broker's virtual hosts, Nova's databases on SQLite, Roost as nova-scheduler, and the
real nova-scheduler with its default number of workers. Both have the same hosts, the same filters, and Roost as their
Placement. Callers send ``select_destinations`` for one instance without a pause, to one scheduler after the other.
Each answer has a durable claim.
"""

import argparse
import json
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.workloads import percentile
from tests.nova.nova_clouds import NovaCloud, open_sqlite_nova
from tests.nova.nova_schedulers import nova_scheduler
from tests.nova.rpc_callers import NOVA, Caller
from tests.support.nova_messages import flavor, request_spec
from tests.support.servers import rabbitmq
from tests.support.servers.nova_database import template
from tests.support.servers.rabbitmq import Broker

_CALL_TIMEOUT_S = 300
_POLL_S = 2.0
# So much that no request is refused.
_TOTALS = {"VCPU": 1_000_000, "MEMORY_MB": 100_000_000, "DISK_GB": 1_000_000}
_NODE = {"vcpus": 1_000_000, "memory_mb": 100_000_000, "free_ram_mb": 99_999_488, "local_gb": 1_000_000}
_START_S = 300


class _TimedCaller(Caller):
    """A caller that waits for its reply without a pause."""

    def time_call(self) -> float:
        """Select a host for a new instance; return the seconds until the answer."""
        arguments = {
            "instance_uuids": [str(uuid.uuid4())],
            "spec_obj": request_spec(flavor=flavor(vcpus=1, memory_mb=64, root_gb=1)),
            "return_objects": True,
            "return_alternates": True,
        }
        start_s = time.perf_counter()
        identifier = self.send("select_destinations", arguments, timeout=_CALL_TIMEOUT_S)
        self.replies.clear()
        while not any(reply["_msg_id"] == identifier and reply["ending"] for reply in self.replies):
            self.connection.drain_events(timeout=_CALL_TIMEOUT_S)
        seconds = time.perf_counter() - start_s
        failure = next((reply["failure"] for reply in self.replies if reply["failure"] is not None), None)
        assert failure is None, failure
        return seconds


def measure(broker: Broker, *, callers: int, seconds: float) -> tuple[float, list[float]]:
    """Call a scheduler from several threads; return the answers a second, and the seconds of each call."""
    clients = [_TimedCaller(broker, NOVA, "scheduler") for _ in range(callers)]
    start_s = time.perf_counter()

    def repeat(client: _TimedCaller) -> list[float]:
        times_s = []
        while time.perf_counter() < start_s + seconds:
            times_s.append(client.time_call())
        return times_s

    with ThreadPoolExecutor(callers) as pool:
        times_s = [each for part in pool.map(repeat, clients) for each in part]
    elapsed_s = time.perf_counter() - start_s
    for client in clients:
        client.close()
    return len(times_s) / elapsed_s, sorted(times_s)


@contextmanager
def schedulers(server: Broker, folder: Path, *, hosts: int) -> Iterator[dict[str, Broker]]:
    """Run both schedulers on new hosts; yield the broker of each by its name."""
    ours, theirs = (server.add_virtual_host(f"{kind}-{uuid.uuid4().hex[:8]}") for kind in ("roost", "nova"))
    database, options = open_sqlite_nova(folder, schema=template(folder))
    (cell,) = database.cells
    names = [f"host-{number:05}" for number in range(hosts)]
    nodes = database.add_hosts(cell, names, **_NODE)
    cloud = NovaCloud(folder, ours, database, options=options)
    with cloud.served(poll_s=_POLL_S):
        for name, number in nodes.items():
            cloud.add_provider(number, name, totals=_TOTALS, traits=["OWNER_NOVA"])  # of recent services
        _wait_for_hosts(cloud, hosts)
        with nova_scheduler(cloud, theirs, folder) as caller:
            caller.wait(cloud.send(str(uuid.uuid4()), caller=caller))  # Its first answer reads all hosts.
            yield {"roost": ours, "nova-scheduler": theirs}
    cloud.close()


def _wait_for_hosts(cloud: NovaCloud, count: int) -> None:
    assert cloud.server is not None
    end_s = time.monotonic() + _START_S
    while True:
        _, _, answer = cloud.server.ask("GET", "/v1/status")
        if answer["hosts"]["up"] == count:
            return
        assert time.monotonic() < end_s, f"Roost has {answer['hosts']} of {count:,} hosts"
        time.sleep(0.5)


def _row(hosts: int, callers: int, results: dict[str, tuple[float, list[float]]]) -> dict[str, Any]:
    row: dict[str, Any] = {"hosts": hosts, "callers": callers}
    for name, (rate, times_s) in results.items():
        row[name] = {
            "calls": len(times_s),
            "per_s": rate,
            "p50_ms": 1000 * median(times_s),
            "p99_ms": 1000 * percentile(times_s, 0.99),
        }
    return row | {"ratio": results["roost"][0] / results["nova-scheduler"][0]}


def _print_row(row: dict[str, Any]) -> None:
    parts = [f"{row['hosts']:>6,} {row['callers']:>7}"]
    for name in ("roost", "nova-scheduler"):
        found = row[name]
        parts.append(f"{found['per_s']:>9,.1f} {found['p50_ms']:>10,.1f} {found['p99_ms']:>10,.1f}")
    print("  ".join(parts), f"{row['ratio']:>6,.0f}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, and write the figures as JSON if requested."""
    parser = argparse.ArgumentParser(prog="python -m bench.nova_rpc", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[3, 503, 5000], metavar="N", help="numbers of hosts")
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 4], metavar="N", help="numbers of callers")
    parser.add_argument("--seconds", type=float, default=20.0, help="duration of each measurement")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the figures")
    options = parser.parse_args(arguments)
    rows = []
    print(f"{'':14}  {'roost':>9} {'':>10} {'':>10}  {'nova-scheduler':>14}")
    print(
        f"{'hosts':>6} {'callers':>7}  " + "  ".join([f"{'a second':>9} {'p50 ms':>10} {'p99 ms':>10}"] * 2), " ratio"
    )
    with rabbitmq.broker() as server:
        for hosts in options.hosts:
            with (
                tempfile.TemporaryDirectory(prefix="roost-bench-") as folder,
                schedulers(server, Path(folder), hosts=hosts) as brokers,
            ):
                for callers in options.callers:
                    results = {
                        name: measure(broker, callers=callers, seconds=options.seconds)
                        for name, broker in brokers.items()
                    }
                    rows.append(_row(hosts, callers, results))
                    _print_row(rows[-1])
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
