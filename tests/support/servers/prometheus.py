"""A Prometheus server of the distribution that scrapes one server of Roost."""

import http.client
import json
import socket
import subprocess
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import debian_packages
from tests.support.wait import wait_until

HOW_TO_INSTALL = f"Prometheus is not installed: {debian_packages.HOW_TO_INSTALL}"


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
    program = debian_packages.find_program("prometheus")
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
