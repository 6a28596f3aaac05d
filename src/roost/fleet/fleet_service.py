"""The fleet service: hosts, aggregates, server groups, and documents (flavors, images, requests and settings)."""

from collections.abc import Mapping, Sequence

from roost.engine.columns.state import State
from roost.errors import BadRequest, NotFound
from roost.fleet.aggregate_writes import creation, is_named
from roost.fleet.group_writes import group_creation
from roost.fleet.host_writes import facts_body
from roost.fleet.lesson_documents import LessonDocuments, StoredLedger
from roost.fleet.name_rules import check_name
from roost.fleet.stored_documents import document_of
from roost.model.fleet import Fleet as FleetValue
from roost.model.group import ServerGroup
from roost.model.host import Aggregate, HostSpec
from roost.model.names import uuid_form
from roost.model.writes import Item, PutHost, Write

_BATCH = 1000


class Fleet:
    """The fleet, and its changes."""

    def __init__(self, journal: StoredLedger) -> None:
        self._journal = journal
        self.lessons = LessonDocuments(journal)

    @property
    def state(self) -> State:
        """The columns, as of the last refresh."""
        return self._journal.state

    def create_aggregates(self, aggregates: Sequence[Aggregate]) -> None:
        """Create aggregates; aggregates without names get a name and metadata.

        The ``aggregates`` of a root provider determine the membership of its host.

        Raises:
            BadRequest: a uuid or name is malformed, or a uuid is in use.
        """
        self._write(self._aggregates(aggregates))

    def check_new(self, fleet: FleetValue) -> None:
        """Check the aggregates, hosts and groups of a new fleet; raise the same errors as their creation."""
        self._aggregates(fleet.aggregates)
        self._check_hosts(fleet.hosts, {uuid_form(each.uuid): each.parent_uuid is None for each in fleet.providers})
        self._groups(fleet.groups)

    def _aggregates(self, aggregates: Sequence[Aggregate]) -> list[Write]:
        state, taken = self.state, set[str]()
        writes: list[Write] = []
        for aggregate in aggregates:
            uuid = uuid_form(aggregate.uuid)
            if uuid in taken or is_named(state, uuid):
                raise BadRequest(f"aggregate {aggregate.name}: uuid {uuid} is taken")
            taken.add(uuid)
            writes.append(creation(self._journal, aggregate))
        return writes

    def register_hosts(self, specs: Sequence[HostSpec]) -> None:
        """Create hosts on root providers.

        Raises:
            NotFound: a provider does not exist.
            BadRequest: a provider is not a root, or already has a host.
        """
        with self._journal.reserve_in_order("host", len(specs)) as first:
            self._check_hosts(specs, {})
            providers = self.state.providers
            writes = []
            for number, spec in enumerate(specs, start=first):
                row = providers.row_of_uuid[uuid_form(spec.provider_uuid)]
                facts = facts_body(spec.node, spec.facts)
                writes.append(PutHost(number, providers.ids[row], spec.host, spec.node, facts, 0))
            self._write(writes)

    def _check_hosts(self, specs: Sequence[HostSpec], new: Mapping[str, bool]) -> None:
        """Check hosts on existing or new providers; ``new``: uuid of a new provider -> whether it is a root."""
        providers, hosts = self.state.providers, self.state.hosts
        taken: set[str] = set()
        for spec in specs:
            for name in (spec.host, spec.node):
                check_name(name, f"a host on provider {spec.provider_uuid}", length_min=1)
            uuid = uuid_form(spec.provider_uuid)
            row = providers.row_of_uuid.get(uuid)
            if row is None and uuid not in new:
                raise NotFound("provider", spec.provider_uuid)
            if not (new[uuid] if row is None else int(providers.parent.view[row]) < 0):
                raise BadRequest(f"host {spec.node}: its provider {spec.provider_uuid} is not the root of a tree")
            if row in hosts.row_of_root or uuid in taken:
                raise BadRequest(f"host {spec.node}: its provider {spec.provider_uuid} has a host already")
            taken.add(uuid)
            facts_body(spec.node, spec.facts)

    def create_groups(self, groups: Sequence[ServerGroup]) -> None:
        """Create server groups.

        Raises:
            BadRequest: a uuid or name is malformed, a uuid is in use, or the policy is unknown.
        """
        self._write(self._groups(groups))

    def _groups(self, groups: Sequence[ServerGroup]) -> list[Write]:
        taken = set(self.state.groups_by_uuid)
        writes: list[Write] = []
        for group in groups:
            uuid = uuid_form(group.uuid)
            if uuid in taken:
                raise BadRequest(f"server group {group.name}: uuid {uuid} is taken")
            taken.add(uuid)
            writes.append(group_creation(self._journal, group))
        return writes

    def _write(self, writes: Sequence[Write]) -> None:
        for start in range(0, len(writes), _BATCH):
            self._journal.write(writes[start : start + _BATCH])

    def document(self, kind: str, body: bytes) -> int:
        """Return the number of a document; store a new document with the next commit.

        The number is a digest of kind and body, so it is equal in all processes.
        """
        document = document_of(kind, body, body)
        if (kind, document.fingerprint) not in self.state.documents:
            self._journal.stage_write(Item(writes=(document,)))
        return document.id
