"""A server whose deciding thread has failed reports it and exits, so that a supervisor restarts it."""

import re
import subprocess
import sys

import pytest

from tests.support.fleets.products import environ
from tests.support.servers.servers import RunningServer

_FAILING_SERVER = """
import sys
from roost.placement import deciding_thread

split_phases = deciding_thread.split_phases

def fail(jobs, **options):
    if any(job.plan.writes or job.plan.create for job in jobs):
        raise MemoryError("planted")
    return split_phases(jobs, **options)

deciding_thread.split_phases = fail
from roost.cli import main
sys.argv = ["roost", {noun!r}, "--listen", "127.0.0.1:0", "--data", {folder!r}]
main()
"""


@pytest.mark.parametrize(
    ("noun", "path", "body"),
    [("placement", "/resource_providers", {"name": "one"}), ("up", "/v1/aggregates", {"name": "one"})],
)
def test_server_exits_when_its_deciding_thread_has_failed(tmp_path, noun, path, body):
    with subprocess.Popen(
        [sys.executable, "-c", _FAILING_SERVER.format(noun=noun, folder=str(tmp_path))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ(),
        cwd=tmp_path,
    ) as process:
        try:
            match = re.match(r"listening on http://[\w.]+:(\d+)", process.stdout.readline())
            status, _, problem = RunningServer(process, int(match[1]), None, []).ask("POST", path, body)
            assert (status, "the thread that answers has ended: MemoryError" in str(problem)) == (503, True)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 1
    assert errors.endswith("the thread that answers has ended: MemoryError('planted')\n")
