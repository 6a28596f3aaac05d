"""Any document leads to an answer, or to an error of one sentence that names the file."""

import copy
import json
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from roost.errors import BadFile
from roost.model.documents.answer import Answer
from roost.model.documents.fleet_document import FleetDocument
from roost.model.documents.request_document import RequestDocument
from roost.offline.decide import decide
from roost.offline.read_document import parse_document
from tests.support.fleets.worlds import settings_of
from tests.unit.offline.documents import provider

ONE, TWO = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2))
FLEET = {
    "version": 1,
    "now": 1000.0,
    "hosts": [
        {
            "host": "a",
            "nodename": "n-a",
            "cell_uuid": "c",
            "rack": "r",
            "instances": [ONE],
            "stats": {"x": "1"},
            "service": {"disabled": False, "last_seen_up": 990.0},
            "free_ram_mb": 7,
            "cpu_info": "{}",
            "supported_instances": [["x86_64", "kvm", "hvm"]],
            "vcpus_total": 3,
            "cpu_allocation_ratio": 1.5,
            "metrics": {"cpu.percent": 1.5},
            "pci_pools": [
                {
                    "vendor_id": "8086",
                    "product_id": "154c",
                    "dev_type": "type-VF",
                    "numa_node": 0,
                    "count": 2,
                    "tags": {"physical_network": None, "own": ["x", "y"]},
                    "rp_uuids": [ONE],
                }
            ],
        },
        {"host": "b", "rack": "r2", "supported_instances": [["x86_64", "kvm", "hvm"]]},
    ],
    "aggregates": [{"name": "fast", "metadata": {"ram_weight_multiplier": "2"}, "hosts": ["a", "b"]}],
    "zones": {"east": ["b"]},
    "images": [{"id": "i", "properties": {"os_type": "linux"}, "instances": [ONE]}],
    "server_groups": [
        {
            "name": "g",
            "policy": "fault-domain",
            "members": {"a": [ONE], "b": 2},
            "rules": {"max_server_per_host": 2},
            "fault_domains": [{"rack": "r", "domain": "d", "members": 1}, {"rack": "r2", "domain": "d"}],
        },
    ],
    "providers": [
        provider("n-a", traits=["HW_CPU_X86_AVX2"]),
        provider("b", aggregates=["fast"]),
        provider(
            "b-gpu",
            parent="b",
            traits=["HW_CPU_X86_AVX2"],
            inventories={"PGPU": {"total": 4, "used": 1, "max_unit": 1}},
        ),
    ],
    "resource_classes": ["CUSTOM_X"],
    "traits": ["CUSTOM_T"],
}
REQUEST = {
    "flavor": {"name": "f", "vcpus": 1, "memory_mb": 1, "root_gb": 0, "extra_specs": {"trait:CUSTOM_T": "forbidden"}},
    "image": {"id": "i", "properties": {"hw_architecture": "x86_64"}},
    "hints": {"fault_domain": ["d"]},
    "group": "g",
    "count": 2,
    "availability_zone": "east,nova",
    "project_id": "p",
    "ignore_hosts": ["a"],
    "force_nodes": [],
    "destination": {"host": "b", "cell": "", "aggregates": [["fast"]], "allow_cross_cell_move": True},
    "resource_groups": [{"suffix": "_1", "resources": {"PGPU": 1}, "required": [["CUSTOM_T", "HW_CPU_X86_AVX2"]]}],
}
ODD = (
    None,
    True,
    0,
    -1,
    1,
    2**31,
    2**53,
    -(2**53),
    2**70,
    0.5,
    -0.0,
    1e308,
    "",
    "a",
    "b",
    "n-a",
    "g",
    "east",
    ONE,
    TWO,
    "ä\n\0",
    "nova",
    ",",
    "<in>",
    ">= x",
    "required",
    [],
    {},
    ["a"],
    [[]],
    [["a"]],
    {"a": 1},
    {"": ""},
    [ONE, ONE],
    "x" * 300,
)


def paths(document, path=()):
    """Yield the path of each value in a document."""
    children = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in children:
        yield (*path, key)
        yield from paths(value, (*path, key))


def mutate(random: Random, document: dict) -> dict:
    """Return a copy with a few values changed, removed, duplicated or renamed."""
    mutant = copy.deepcopy(document)
    for _ in range(random.choice((1, 1, 2, 4))):
        path = random.choice(list(paths(mutant)))
        above = mutant
        for key in path[:-1]:
            above = above[key]
        key, act = path[-1], random.choice(("change", "change", "drop", "rename", "double"))
        if act == "drop":
            del above[key]
        elif act == "rename" and isinstance(above, dict):
            above[random.choice(("x", "host", "name", "uuid", "PGPU", "b"))] = above.pop(key)
        elif act == "double" and isinstance(above, list):
            above.append(copy.deepcopy(above[key]))
        else:
            above[key] = copy.deepcopy(random.choice(ODD))
    return mutant


def decide_or_error(fleet: dict, request: dict) -> Answer | BadFile:
    """Return the answer, or the error."""
    try:
        return decide(
            parse_document(json.dumps(fleet).encode(), FleetDocument, name="fleet.json"),
            parse_document(json.dumps(request).encode(), RequestDocument, name="request.json"),
            settings_of(),
            fleet_name="fleet.json",
            request_name="request.json",
        )
    except BadFile as error:
        return error


@given(st.integers(0, 2**32))
def test_any_document_is_answered_or_refused_in_one_sentence(seed):
    random = Random(seed)
    fleet, request = copy.deepcopy(FLEET), copy.deepcopy(REQUEST)
    if random.random() < 0.5:
        del fleet["providers"]
    which = random.choice(("fleet", "request", "both"))
    result = decide_or_error(
        fleet if which == "request" else mutate(random, fleet), request if which == "fleet" else mutate(random, request)
    )
    if isinstance(result, BadFile):
        # A request may refer to removed parts of the fleet; a fleet never refers to a request.
        assert result.path == "request.json" or (result.path == "fleet.json" and which != "request")
        assert len(str(result)) < 1000
    else:
        assert result.outcome == "refused" or len(result.picks) == result.count


def test_unmodified_documents_are_granted():
    for fleet in (FLEET, {key: value for key, value in FLEET.items() if key != "providers"}):
        assert [pick.host for pick in decide_or_error(fleet, REQUEST).picks] == ["b", "b"]
