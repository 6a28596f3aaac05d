"""The report client over a Placement in this process, with keystoneauth1 and without."""

import sys

import pytest

from roost import PlacementDirect
from roost.direct.direct_report import DirectHttp
from roost.errors import PlacementGone
from tests.support.agents.report_clients import World


@pytest.fixture(params=["keystoneauth", "own"])
def direct(request, monkeypatch):
    """Return a Placement in this process, with keystoneauth1 and without."""
    if request.param == "keystoneauth":
        pytest.importorskip("keystoneauth1", reason="the extra keystone is not installed")
    else:
        for name in ("keystoneauth1.adapter", "keystoneauth1", "requests"):
            monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, "roost.direct.keystone_adapter", raising=False)
    return PlacementDirect("sqlite://")


def test_report_client_updates_the_provider_tree(direct):
    with direct as client:
        world = World(DirectHttp(client))
        report, tree = world.rooted()
        tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
        report.update_from_provider_tree(tree, {})
        assert world.children("host") == ["cell", "host"]


def test_error_status_is_returned_as_a_response(direct):
    with direct as client:
        answer = DirectHttp(client).ask("PUT", "/traits/NONSENSE", version="1.36")
        assert (answer.status, answer.code) == (400, "placement.undefined_code")


def test_request_after_the_end_of_the_context_raises_placement_gone(direct):
    with direct as client:
        http = DirectHttp(client)
    with pytest.raises(PlacementGone, match="is closed"):
        http.ask("GET", "/traits", version="1.36")
