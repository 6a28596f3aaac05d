"""A published third-party filter, unchanged: ``blazar-nova`` from PyPI, with and without Nova."""

import json
import shutil
import subprocess

import pytest

from tests.differential.scheduler import nova
from tests.support.missing_programs import skip_test
from tests.support.servers.plugin_site import run_roost, write_files

SETTINGS = """
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = blazarnova.scheduler.filters.blazar_filter.BlazarFilter
enabled_filters = ComputeFilter, BlazarFilter
weight_classes = nova.scheduler.weights.all_weighers
[blazar:physical:host]
aggregate_freepool_name = pool
preemptible_aggregate = pool
allow_preemptibles = True
"""
# Host a is free for reservations; b is reserved by alice, who shares it with bob; c is open to all projects.
FLEET = {
    "hosts": [{"host": "a"}, {"host": "b"}, {"host": "c"}],
    "aggregates": [
        {"name": "pool", "hosts": ["a"]},
        {
            "name": "lease",
            "hosts": ["b"],
            "metadata": {"availability_zone": "blazar_lease", "blazar:owner": "alice", "bob": "blazar:tenant"},
        },
        {"name": "racks", "hosts": ["a", "b", "c"], "metadata": {"rack": "1"}},
    ],
}
FLAVOR = {"name": "f", "vcpus": 1, "memory_mb": 1}
CASES = {
    "no reservation": ({}, {}, ["c"]),
    "of its owner": ({"project_id": "alice", "hints": {"reservation": "lease"}}, {}, ["b"]),
    "shared with a project": ({"project_id": "bob", "hints": {"reservation": ["lease"]}}, {}, ["b"]),
    "of another project": ({"project_id": "eve", "hints": {"reservation": "lease"}}, {}, []),
    "of an unknown lease": ({"project_id": "alice", "hints": {"reservation": "old"}}, {}, []),
    "an instance reservation": ({}, {"aggregate_instance_extra_specs:reservation": "r"}, ["a", "b", "c"]),
    "preemptible": ({}, {"blazar:preemptible": "true"}, ["a"]),
}


@pytest.fixture(scope="module")
def package():
    """Return the folder of the installed package."""
    program = nova.python()
    if program is None:
        skip_test(nova.HOW_TO_INSTALL)
    script = "import blazarnova; print(blazarnova.__path__[0])"
    result = subprocess.run([program, "-I", "-c", script], capture_output=True, text=True, check=False)
    if result.returncode:
        skip_test(f"{program} has no blazar-nova: remove .cache/reference-nova and run `make reference-nova`")
    return result.stdout.strip()


def accepted_hosts(folder, case, *, python, hidden):
    """Return the sorted names of the hosts that a request may use."""
    request, extra_specs, _ = CASES[case]
    write_files(
        folder,
        {
            "nova.conf": SETTINGS,
            "fleet.json": json.dumps(FLEET),
            "request.json": json.dumps({**request, "flavor": {**FLAVOR, "extra_specs": extra_specs}}),
        },
    )
    words = ("--fleet", "fleet.json", "--request", "request.json", "--nova-conf", "nova.conf", "--format", "json")
    result = run_roost(folder, "decide", *words, hidden=hidden, python=python)
    assert result.returncode in (0, 6), result.stderr
    answer = json.loads(result.stdout)
    faults = [each for each in answer.get("warnings", []) if " raised " in each]
    assert faults == []
    return sorted(each["host"] for each in answer["ranking"])


@pytest.mark.differential
@pytest.mark.parametrize("case", CASES)
def test_blazar_without_nova(tmp_path, package, case):
    shutil.copytree(package, tmp_path / "site" / "blazarnova")
    assert accepted_hosts(tmp_path, case, python=None, hidden=("nova",)) == CASES[case][2]


@pytest.mark.differential
@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("case", ["no reservation", "of its owner", "preemptible"])
def test_blazar_with_nova_installed(tmp_path, case):
    assert accepted_hosts(tmp_path, case, python=nova.python(), hidden=()) == CASES[case][2]
