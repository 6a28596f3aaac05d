import pytest

from roost.client.remote_claims import RemotePlacement
from roost.errors import PlacementGone
from roost.model.placement.placement_api import Answer
from roost.model.request import CandidateQuery, ResourceGroup

ONE = CandidateQuery(groups=(ResourceGroup(resources={"VCPU": 1}),))


class FixedConnection:
    """A connection with one fixed answer."""

    def __init__(self, body, *, minor=39, status=200):
        self.minor, self._answer = minor, Answer(status, body, is_repeated=False)
        self.paths = []

    def request(self, _method, path, _body=None):
        """Return the answer."""
        self.paths.append(path)
        return self._answer


def summary(root, **used):
    resources = {name: {"capacity": 100, "used": amount} for name, amount in used.items()}
    return {"root_provider_uuid": root, "resources": resources}


def test_first_candidate_of_a_tree_is_used():
    requests = [
        {
            "allocations": {"child": {"resources": {"VCPU": 1}}, "root": {"resources": {"MEMORY_MB": 2}}},
            "mappings": {"": ["root"], "1": ["child"]},
        },
        {"allocations": {"other": {"resources": {"VCPU": 1}}, "root": {"resources": {"MEMORY_MB": 2}}}},
    ]
    summaries = {
        "root": summary("root", MEMORY_MB=5),
        "child": summary("root", VCPU=3),
        "other": summary("root", VCPU=4),
    }
    connection = FixedConnection({"allocation_requests": requests, "provider_summaries": summaries})
    (host,) = RemotePlacement(connection).candidates(ONE).hosts.values()
    assert host.allocations == {"child": {"VCPU": 1}, "root": {"MEMORY_MB": 2}}
    assert host.used == {"MEMORY_MB": 5, "VCPU": 7}
    assert host.mappings == {"": ("root",), "1": ("child",)}


def test_candidate_with_a_sharing_provider_counts_for_both_trees():
    requests = [{"allocations": {"host": {"resources": {"VCPU": 1}}, "disk": {"resources": {"DISK_GB": 2}}}}]
    summaries = {"host": summary("host", VCPU=0), "disk": summary("disk", DISK_GB=9)}
    connection = FixedConnection({"allocation_requests": requests, "provider_summaries": summaries})
    hosts = RemotePlacement(connection).candidates(ONE).hosts
    assert set(hosts) == {"host", "disk"}
    assert hosts["host"].allocations == {"host": {"VCPU": 1}, "disk": {"DISK_GB": 2}}
    assert hosts["host"].used == {"VCPU": 0}


@pytest.mark.parametrize("minor", [38, 39])
def test_any_of_several_traits_needs_microversion_1_39(minor):
    required = (frozenset({"CUSTOM_A", "CUSTOM_B"}), frozenset({"CUSTOM_C"}))
    query = CandidateQuery(groups=(ResourceGroup(resources={"VCPU": 1}, required=required),))
    connection = FixedConnection({"allocation_requests": [], "provider_summaries": {}}, minor=minor)
    answer = RemotePlacement(connection).candidates(query)
    if minor == 39:
        assert connection.paths == [
            "/allocation_candidates?required=CUSTOM_C&required=in:CUSTOM_A,CUSTOM_B&resources=VCPU:1"
        ]
        assert not answer.problem
    else:
        assert not connection.paths
        assert answer.problem == "alternative traits need microversion 1.39; the remote Placement has 1.38"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"allocation_requests": [{}], "provider_summaries": {}},
        {"allocation_requests": [], "provider_summaries": {"a": {}}},
        {
            "allocation_requests": [{"allocations": {"a": {"resources": {"VCPU": "much"}}}}],
            "provider_summaries": {"a": summary("a")},
        },
    ],
)
def test_malformed_candidates_are_an_error(body):
    with pytest.raises(PlacementGone):
        RemotePlacement(FixedConnection(body)).candidates(ONE)


def test_refused_query_gives_the_reason():
    connection = FixedConnection({"errors": [{"detail": "No such trait(s): CUSTOM_A."}]}, status=400)
    assert RemotePlacement(connection).candidates(ONE).problem == "No such trait(s): CUSTOM_A."
