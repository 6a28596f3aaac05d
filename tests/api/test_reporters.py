"""Every host value that filters and weighers can read has a reporter, named in docs/agents.md."""

import importlib
import os
import re
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from roost.app import open_reader
from roost.engine.columns.host_columns import Hosts
from roost.model.host import HostFacts
from roost.scheduler.framework.host_attributes import DYNAMIC, FACTS, NAMES, RATIOS, STATIC
from roost.scheduler.framework.host_view import HostView
from tests.support.servers.clusters import hosts_up, running_agents
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

PAGE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (`.+`) \| [^|]+ \| `roost\.([\w.]+)` \|$", re.MULTILINE)
# Rules read hosts through a view only: attributes, columns and facts.
NUMBERS = DYNAMIC | STATIC | RATIOS
READABLE = {*NUMBERS, *FACTS, *NAMES, *Hosts().columns, *HostFacts.__struct_fields__}

SETTINGS = """
[agent]
compute_monitors = ["cpu.virt_driver"]
rack = "r1"
cpu_allocation_ratio = 4.0
reserved_host_disk_mb = 2048
"""
SCRIPT = """
[[node]]
local_gb = 500
metrics = { "cpu.percent" = 0.5 }
stats = { gpus = "none" }
cpu_info = { arch = "x86_64" }
[[node.cell]]
id = 0
memory_mb = 4096
cpus = [0, 1, 2, 3]
[[node.pci]]
address = "0000:0a:00.0"
vendor_id = "10de"
product_id = "1db4"
"""
# One build fails. Another one waits until the pipe has a writer.
DRIVER = """
from roost.compute.drivers.fake import driver as fake


def make(options, terms):
    driver = fake.make({"script": options["script"]}, terms)
    spawn = driver.spawn

    def scripted_spawn(spec, operation):
        if spec.name == "bad":
            raise RuntimeError("it is bad")
        if spec.name == "held":
            open(options["gate"]).close()
        spawn(spec, operation)

    driver.spawn = scripted_spawn
    return driver
"""


def reporters():
    """Return the function that reports each name, from the table in the document."""
    (section,) = re.findall(r"^## Reporters\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    functions = {}
    for names, function in _ROW.findall(section):
        for name in re.findall(r"`(\w+)`", names):
            assert name not in functions, f"{name} is there twice"
            functions[name] = function
    return functions


def resolve(function):
    """Return the object with a dotted name below the package."""
    parts = function.split(".")
    for at in range(len(parts) - 1, 0, -1):
        try:
            target = importlib.import_module(".".join(("roost", *parts[:at])))
        except ModuleNotFoundError:
            continue
        for part in parts[at:]:
            target = getattr(target, part)
        return target
    raise AssertionError(f"there is no module of {function}")


def reported_values(folder):
    """Return the names of all values that rules can read from the only host."""
    with closing(open_reader(None, folder, environ={})) as roost:
        view, hosts = HostView(roost.state), roost.state.hosts
        values = {name: column.each[0] for name, column in hosts.columns.items()}
        values |= {name: read(view)[0] for name, read in (NUMBERS | NAMES).items()}
        facts = view.facts(0)
        values |= {name: read(facts) for name, read in FACTS.items()}
        bare = msgspec.structs.asdict(HostFacts())
        changed = {name for name, value in msgspec.structs.asdict(facts).items() if value != bare[name]}
        return changed | {name for name, value in values.items() if value}


def create(server, name, *, status, task=""):
    """Create an instance, and wait for its status and task."""
    body = {"name": name, "flavor": {"name": "small", "vcpus": 1, "memory_mb": 64, "root_gb": 1}}
    (uuid,) = server.ask("POST", "/v1/instances", body)[2]["instances"]

    def has_state():
        instance = server.ask("GET", f"/v1/instances/{uuid}")[2]
        return (instance["status"], instance["task"]) == (status, task)

    wait_until(has_state)


@pytest.mark.parametrize("name", sorted(READABLE))
def test_every_readable_host_value_has_a_documented_reporter(name):
    assert callable(resolve(reporters()[name]))


def test_reporter_table_names_no_other_values():
    assert reporters().keys() - READABLE == set()


def test_live_fleet_reports_every_readable_host_value(tmp_path):
    (tmp_path / "judged.py").write_text(DRIVER)
    (tmp_path / "judged-1.dist-info").mkdir()
    (tmp_path / "judged-1.dist-info" / "entry_points.txt").write_text("[roost.drivers]\njudged = judged:make\n")
    (tmp_path / "script.toml").write_text(SCRIPT)
    (tmp_path / "agent.toml").write_text(SETTINGS)
    os.mkfifo(tmp_path / "gate")
    words = (
        "--driver",
        "judged",
        "--host",
        "host-1",
        "--cell",
        "east",
        "--state-dir",
        tmp_path / "state",
        "--config",
        tmp_path / "agent.toml",
        "--option",
        f"script={tmp_path / 'script.toml'}",
        "--option",
        f"gate={tmp_path / 'gate'}",
    )
    with serve(noun="up", folder=tmp_path) as server, running_agents(server, tmp_path, *words):
        wait_until(lambda: hosts_up(server) == {"host-1"})
        create(server, "good", status="ACTIVE")
        create(server, "bad", status="ERROR")
        create(server, "held", status="BUILD", task="spawning")
        change = {"disabled": True, "disabled_reason": "repair", "forced_down": True}
        assert server.ask("PATCH", "/v1/services/host-1", change)[0] == 200
        wait_until(lambda: "failed_builds" in reported_values(tmp_path))
        reported = reported_values(tmp_path)
        run = server.ask("GET", "/v1/agents/host-1")[2]["run"]
        assert server.ask("DELETE", f"/v1/agents/host-1?run={run}")[0] == 204
        reported |= reported_values(tmp_path)
        assert READABLE - reported == set()
