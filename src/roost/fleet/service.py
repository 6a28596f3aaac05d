"""Fleet: the hosts on the providers, their aggregates and server groups, and the documents requests name."""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from roost.engine.state import State
from roost.errors import BadRequest, NotFound
from roost.model.fleet import Fleet as FleetValue
from roost.model.group import GROUP_POLICIES, ServerGroup
from roost.model.host import Aggregate, HostFacts, HostSpec
from roost.model.journal import Item, PutAggregate, PutDocument, PutGroup, PutHost, Write
from roost.model.names import is_text, uuid_bytes, uuid_form
from roost.ports import Journal

_BATCH = 1000
_NAME_MAX = 255
_FACTS = msgspec.msgpack.Decoder(HostFacts)


class Fleet:
    """What runs where, and the acts that change it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @property
    def state(self) -> State:
        """The columns, as of the last refresh."""
        return self._journal.state

    def create_aggregates(self, aggregates: Sequence[Aggregate]) -> None:
        """Create aggregates, or name those that came to be when a provider joined them.

        Hosts join by the ``aggregates`` of their root provider.

        Raises:
            BadRequest: a uuid or name is malformed, or a uuid taken.
        """
        self._write(self._aggregates(aggregates))

    def check_new(self, fleet: FleetValue) -> None:
        """Check what is to be created, except providers, and write nothing; errors are those of the creation."""
        self._aggregates(fleet.aggregates)
        self._check_hosts(fleet.hosts, {uuid_form(each.uuid): each.parent_uuid is None for each in fleet.providers})
        self._groups(fleet.groups)

    def _aggregates(self, aggregates: Sequence[Aggregate]) -> list[Write]:
        state, coming = self.state, set[str]()
        writes: list[Write] = []
        for aggregate in aggregates:
            _check_name(aggregate.name, f"aggregate {aggregate.uuid}")
            uuid = uuid_form(aggregate.uuid)
            number = state.aggregates.id_of(uuid)
            if uuid in coming or (number is not None and state.aggregate_names[number]):
                raise BadRequest(f"aggregate {aggregate.name}: uuid {uuid} is taken")
            coming.add(uuid)
            body = _uuid_bytes(aggregate.uuid, "aggregate")
            version = 0 if number is None else state.aggregate_versions[number] + 1
            number = self._journal.new_id("aggregate") if number is None else number
            writes.append(PutAggregate(number, body, aggregate.name, aggregate.metadata, version))
        return writes

    def register_hosts(self, specs: Sequence[HostSpec]) -> None:
        """Put services on root providers.

        Raises:
            NotFound: a provider is not known.
            BadRequest: a provider is no root, or has a host already.
        """
        with self._journal.creating("host", len(specs)) as first:
            self._check_hosts(specs, {})
            providers = self.state.providers
            writes = []
            for number, spec in enumerate(specs, start=first):
                row = providers.row_of_uuid[uuid_form(spec.provider_uuid)]
                facts = msgspec.Raw(msgspec.msgpack.encode(spec.facts))
                writes.append(PutHost(number, providers.ids[row], spec.host, spec.node, facts, 0))
            self._write(writes)

    def _check_hosts(self, specs: Sequence[HostSpec], coming: Mapping[str, bool]) -> None:
        """Check hosts on providers that exist, or are to be created; of these is told whether each is a root."""
        providers, hosts = self.state.providers, self.state.hosts
        taken: set[str] = set()
        for spec in specs:
            for name in (spec.host, spec.node):
                _check_name(name, f"a host on provider {spec.provider_uuid}", length_min=1)
            uuid = uuid_form(spec.provider_uuid)
            row = providers.row_of_uuid.get(uuid)
            if row is None and uuid not in coming:
                raise NotFound("provider", spec.provider_uuid)
            if not (coming[uuid] if row is None else int(providers.parent.view[row]) < 0):
                raise BadRequest(f"host {spec.node}: its provider {spec.provider_uuid} is not the root of a tree")
            if row in hosts.row_of_root or uuid in taken:
                raise BadRequest(f"host {spec.node}: its provider {spec.provider_uuid} has a host already")
            taken.add(uuid)
            _check_facts(spec)

    def create_groups(self, groups: Sequence[ServerGroup]) -> None:
        """Create server groups.

        Raises:
            BadRequest: a uuid or name is malformed, a uuid taken, or there is no such policy.
        """
        self._write(self._groups(groups))

    def _groups(self, groups: Sequence[ServerGroup]) -> list[Write]:
        known = set(self.state.groups_by_uuid)
        writes: list[Write] = []
        for group in groups:
            _check_name(group.name, f"server group {group.uuid}")
            if group.policy not in GROUP_POLICIES:
                raise BadRequest(f"server group {group.uuid}: there is no policy {group.policy!r}")
            uuid = uuid_form(group.uuid)
            if uuid in known:
                raise BadRequest(f"server group {group.name}: uuid {uuid} is taken")
            known.add(uuid)
            body = _uuid_bytes(group.uuid, "server group")
            number = self._journal.new_id("group")
            writes.append(PutGroup(number, body, group.name, group.policy, group.max_server_per_host))
        return writes

    def _write(self, writes: Sequence[Write]) -> None:
        for start in range(0, len(writes), _BATCH):
            self._journal.write(writes[start : start + _BATCH])

    def document(self, kind: str, body: bytes) -> int:
        """Return the number of a flavor, image, request or settings; a new one is stored with the next commit.

        The number is a digest of kind and body, so processes that store the same document agree on it.
        """
        fingerprint = hashlib.blake2b(kind.encode() + b"\0" + body, digest_size=16).digest()
        number = int.from_bytes(fingerprint[:8], "big") >> 2 | 1
        if (kind, fingerprint) not in self.state.documents:
            self._journal.stage_write(Item(writes=(PutDocument(number, kind, fingerprint, body),)))
        return number


def _check_name(name: str, of: str, *, length_min: int = 0) -> None:
    if len(name) < length_min or not is_text(name, length_max=_NAME_MAX):
        raise BadRequest(f"{of}: its name must be {length_min}..{_NAME_MAX} characters of text, got {name[:70]!r}")


def _check_facts(spec: HostSpec) -> None:
    """Refuse facts that could be written and never read again: then no process could open the database."""
    try:
        _FACTS.decode(msgspec.msgpack.encode(spec.facts))
    except (msgspec.ValidationError, OverflowError, UnicodeEncodeError) as error:
        raise BadRequest(f"host {spec.node}: its facts cannot be kept: {error}") from None


def _uuid_bytes(text: str, kind: str) -> bytes:
    body = uuid_bytes(text)
    if body is None:
        raise BadRequest(f"the {kind} {text!r} is no uuid")
    return body
