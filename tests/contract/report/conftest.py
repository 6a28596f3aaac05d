"""All kinds of Placement for a report client: Roost in process, Roost over HTTP, and the reference."""

import itertools

import pytest

from roost import PlacementDirect
from roost.direct.direct_report import DirectHttp
from tests.support.agents.report_clients import World, world_at
from tests.support.servers.servers import serve

KINDS = ["in process", "over HTTP", pytest.param("reference", marks=pytest.mark.differential)]
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server_address(tmp_path_factory):
    """Yield the address of a Roost server that runs for all tests of a file."""
    with serve(folder=tmp_path_factory.mktemp("served")) as server:
        yield server.address


@pytest.fixture(params=KINDS)
def world(request):
    """Yield a world on each kind of Placement."""
    if request.param == "in process":
        with PlacementDirect("sqlite://") as client:
            yield World(DirectHttp(client))
    elif request.param == "over HTTP":
        with world_at(request.getfixturevalue("server_address"), f"{request.node.name} {next(_NUMBERS)}") as found:
            yield found
    else:
        reference = request.getfixturevalue("reference_placement")
        reference.empty()
        with world_at(reference.address) as found:
            yield found
