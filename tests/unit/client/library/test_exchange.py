"""Bodies and queries as they are sent."""

from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from roost.api.v1.schemas.decisions import DecisionBody, DecisionsQuery
from roost.api.v1.schemas.hosts import HostsQuery, ServicePatch
from roost.client.library.exchange import encode_body, path_of
from roost.model.documents.request_document import DestinationEntry, FlavorEntry, ResourceGroupEntry

FLAVORS = st.builds(FlavorEntry, name=st.text(max_size=5), vcpus=st.integers(0, 9), extra_specs=st.just({"a": "b"}))
BODIES = st.builds(
    DecisionBody,
    flavor=FLAVORS | st.just("small"),
    count=st.integers(1, 3),
    instance_uuids=st.just((UUID(int=7),)) | st.just(()),
    destination=st.none() | st.builds(DestinationEntry, host=st.none() | st.just("host-1")),
    resource_groups=st.lists(st.builds(ResourceGroupEntry, required=st.just((frozenset({"A"}),))), max_size=2).map(
        tuple
    ),
    dry_run=st.booleans(),
)


@given(BODIES)
def test_server_reads_the_body_that_was_sent(body):
    assert msgspec.json.decode(encode_body(body), type=DecisionBody) == body


def test_fields_with_their_defaults_are_not_sent():
    assert encode_body(DecisionBody(flavor=FlavorEntry(vcpus=1))) == b'{"flavor":{"vcpus":1}}'
    assert encode_body(ServicePatch(disabled=False)) == b'{"disabled":false}'


def test_query_has_the_fields_that_differ_from_their_defaults():
    assert path_of("hosts", query=HostsQuery()) == "/v1/hosts"
    assert path_of("hosts", query=HostsQuery(up=True, zone="a b")) == "/v1/hosts?zone=a+b&up=true"
    assert path_of("decisions", query=DecisionsQuery(refused=False, cursor=0)) == "/v1/decisions?refused=false&cursor=0"
