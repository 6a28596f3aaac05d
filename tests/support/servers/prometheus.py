"""A Prometheus server of the distribution: its package, and a process that scrapes one server of Roost."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.agents.libvirt_packages import run
from tests.support.wait import wait_until

PACKAGE = "prometheus"
HOW_TO_INSTALL = "Prometheus is not installed: `make prometheus` installs it"


class Prometheus:
    """The HTTP API of a Prometheus server."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, path: str, **query: str) -> dict[str, object]:
        """Return the data of an answer.

        Raises:
            OSError: the server does not answer.
            ValueError: the query is wrong; the message has the reason.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(query)}")
            response = connection.getresponse()
            if response.status == 503:
                raise ConnectionError("Prometheus is starting")
            answer = json.loads(response.read())
        finally:
            connection.close()
        if answer["status"] != "success":
            raise ValueError(f"{query}: {answer['error']}")
        return answer["data"]

    def query(self, expression: str) -> list[dict[str, object]]:
        """Return the series of an expression now."""
        data = self.get("query", query=expression)
        return data["result"] if data["resultType"] == "vector" else [data]


@contextmanager
def prometheus_on(target_port: int, *, rules: Path, folder: Path) -> Iterator[Prometheus]:
    """Run Prometheus during the block; it scrapes a server each second as job ``roost``."""
    program = shutil.which("prometheus")
    assert program is not None, HOW_TO_INSTALL
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "roost", "static_configs": [{"targets": [f"127.0.0.1:{target_port}"]}]}],
    }
    folder.mkdir()
    (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML.
    port = _free_port()
    words = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([program, *words, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        server = Prometheus(port)

        def has_samples() -> bool:
            assert process.poll() is None, (folder / "log").read_text()
            try:
                found = server.query("count_over_time(roost_build_info[1m]) >= 5")
            except OSError:
                return False
            return bool(found)

        wait_until(has_samples)
        yield server
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def main() -> None:
    """Install the package if possible; print whether its tests run."""
    problem = ""
    if shutil.which(PACKAGE) is None:
        if shutil.which("apt-get") is None or os.geteuid() != 0:
            problem = "it cannot be installed without root and apt-get"
        else:
            run("apt-get", "update")  # If this fails, old package lists may still work.
            problem = run("apt-get", "install", "--yes", "--no-install-recommends", PACKAGE)
    print(f"The tests on a real Prometheus are skipped: {problem}" if problem else "Prometheus is installed")


if __name__ == "__main__":
    main()
