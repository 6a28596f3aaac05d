"""From a call of ``select_destinations`` and its outcome to notifications.

nova-scheduler announces the start once Placement has offered hosts, and the end if every instance has a host. Roost
knows both only after its decision, which is one step. So it sends both then, each with its own time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import msgspec

from roost.engine.columns.state import State
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.nova.messages.nova_object import read_object
from roost.nova.notifications.legacy_payload import build_legacy_payload
from roost.nova.notifications.notification_message import build_notification, encode_notification
from roost.nova.notifications.notification_options import NotificationOptions
from roost.nova.notifications.notification_sender import NotificationSender, Outgoing
from roost.nova.notifications.spec_payload import SpecChanges, build_spec_payload
from roost.nova.rpc.rpc_call import Call
from roost.ports import Clock
from roost.scheduler.query.destination import find_target_rows
from roost.scheduler.query.prefilter import PrefilterContext
from roost.scheduler.query.prefilters.map_az_to_placement_aggregate import map_az_to_placement_aggregate
from roost.scheduler.query.prefilters.require_tenant_aggregate import require_tenant_aggregate

_EVENT = "scheduler.select_destinations"
_END_S = 2.0
_REMEMBERED_MAX = 1000
# Topics, publisher, and content.
_Payload = tuple[Sequence[str], str, dict[str, Any]]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a decision in the notifications of its request.

    Args:
        is_granted: whether every instance has a host.
        changes: changes to the request before the choice.
        hosts: the chosen hosts, one per instance.
    """

    is_granted: bool
    changes: SpecChanges = SpecChanges()
    hosts: tuple[str, ...] = ()


class SelectionNotifier:
    """Sends the notifications of decisions. It never delays or fails a decision.

    Args:
        options: formats, drivers, topics and brokers.
        clock: the clock of this machine.
    """

    def __init__(self, options: NotificationOptions, *, clock: Clock) -> None:
        self._options, self._clock = options, clock
        self._required = _RequiredAggregates()
        name = f"roost notifier {options.broker.host}"
        self._sender = NotificationSender(options.broker, name=name, clock=clock.elapsed_s)

    def start(self) -> None:
        """Start to send."""
        self._sender.start()

    def stop(self) -> None:
        """Send the rest, for a short time, and stop."""
        self._sender.stop(_END_S)

    def now_s(self) -> float:
        """Return the time for the start of a call, seconds since the epoch."""
        return self._clock.now_s()

    def find_changes(self, request: Request, state: State, settings: Settings) -> SpecChanges:
        """Return the changes to a request for versioned notifications; for the deciding thread."""
        if not self._options.versioned_topics:
            return SpecChanges()
        aggregates = self._required.find(request, state, settings)
        if request.destination is None and not aggregates:
            return SpecChanges()
        rows = find_target_rows(request, state) or []
        target = (state.hosts.names[rows[0]], state.hosts.nodes[rows[0]]) if len(rows) == 1 else None
        return SpecChanges(aggregates=aggregates, target=target)

    def notify(self, call: Call, selection: Selection, *, started_s: float) -> None:
        """Send the notifications of a call; for any thread."""
        ended_s = self._clock.now_s()

        def build() -> list[Outgoing]:
            return list(self._build(call, selection, started_s=started_s, ended_s=ended_s))

        self._sender.put(build, size=call.size)

    def _build(self, call: Call, selection: Selection, *, started_s: float, ended_s: float) -> Iterator[Outgoing]:
        spec = read_object(call.args.get("spec_obj"), "RequestSpec", major=1)
        uuids = call.args.get("instance_uuids") or (spec.get("instance_uuid"),)
        first = self._payloads(spec, selection.changes, instance_uuid=spec.get("instance_uuid"))
        yield from self._encode(call, first, event=f"{_EVENT}.start", time_s=started_s)
        if selection.is_granted:
            last = self._payloads(spec, selection.changes, instance_uuid=uuids[-1], hosts=selection.hosts)
            yield from self._encode(call, last, event=f"{_EVENT}.end", time_s=ended_s)

    def _payloads(
        self,
        spec: Mapping[str, Any],
        changes: SpecChanges,
        *,
        instance_uuid: str | None,
        hosts: Sequence[str] = (),
    ) -> Iterator[_Payload]:
        """Yield the payload of each format in use, with its topics and its publisher."""
        options = self._options
        if options.topics:
            payload = build_legacy_payload({**spec, "instance_uuid": instance_uuid})
            yield options.topics, f"scheduler.{options.broker.host}", payload
        if options.versioned_topics:
            payload = build_spec_payload(spec, changes, instance_uuid=instance_uuid, hosts=hosts)
            yield options.versioned_topics, f"nova-scheduler:{options.broker.host}", payload

    def _encode(self, call: Call, payloads: Iterable[_Payload], *, event: str, time_s: float) -> Iterator[Outgoing]:
        for topics, publisher, payload in payloads:
            message = build_notification(call.context, payload, event=event, publisher=publisher, time_s=time_s)
            for has_envelope, topic in product(self._options.envelopes, topics):
                yield Outgoing(f"{topic}.info", encode_notification(message, has_envelope=has_envelope))


class _RequiredAggregates:
    """The aggregates that settings and zones require. One pass over all aggregates serves all equal requests."""

    def __init__(self) -> None:
        self._state: State | None = None
        self._settings: Settings | None = None
        self._epoch = -1  # rises with each change of an aggregate
        self._found: dict[tuple[str | None, str], tuple[str, ...]] = {}  # by zone and project

    def find(self, request: Request, state: State, settings: Settings) -> tuple[str, ...]:
        """Return the requirements of a request, each a comma-separated list of aggregates."""
        if not request.availability_zone and not settings.scheduler.limit_tenants_to_placement_aggregate:
            return ()
        is_current = state is self._state and settings is self._settings and state.changes.epoch == self._epoch
        if not is_current or len(self._found) >= _REMEMBERED_MAX:
            self._state, self._settings, self._epoch, self._found = state, settings, state.changes.epoch, {}
        key = (request.availability_zone, request.project_id)
        if key not in self._found:
            self._found[key] = _find_aggregates(request, state, settings)
        return self._found[key]


def _find_aggregates(request: Request, state: State, settings: Settings) -> tuple[str, ...]:
    name_of = state.aggregates.name_of
    context = PrefilterContext(
        request=request,
        required=frozenset(),
        aggregates={name_of(aggregate): metadata for aggregate, metadata in state.metadata.items()},
        are_hosts_owned=False,
        default_zone=settings.default.default_availability_zone,
        settings=settings.scheduler,
    )
    effects = (require_tenant_aggregate(context), map_az_to_placement_aggregate(context))
    return tuple(",".join(sorted(uuids)) for effect in effects for uuids in effect.member_of)
