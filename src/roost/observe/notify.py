"""Notifications of decisions: before they are made, and when they are durable."""

from collections.abc import Callable, Sequence

import msgspec

from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, NamedRequest
from roost.model.request import Request
from roost.model.work.notification import HostSelection, InstancePlace
from roost.observe import log
from roost.observe.event_buffer import Events

Deed = Request | NamedRequest | Departure
Result = Decision | Exception | None
_NAMES = ("scheduler.select_destinations",)
_OLDER_NAMES = ("scheduler.run_instance",)


class Notifying:
    """Wraps the function that does acts, and publishes those that request hosts.

    Args:
        decide: does acts, in order.
        events: where to publish.
        now_s: seconds since the epoch.
    """

    def __init__(
        self, decide: Callable[[Sequence[Deed]], Sequence[Result]], events: Events, *, now_s: Callable[[], float]
    ) -> None:
        self._decide, self._events, self._now_s = decide, events, now_s
        self._names = _NAMES + (_OLDER_NAMES if events.limits.run_instance else ())

    def __call__(self, deeds: Sequence[Deed]) -> Sequence[Result]:
        """Do acts in order; an act that fails is published as failed."""
        begun = [self._begin(deed) for deed in deeds]
        try:
            results = self._decide(deeds)
        except Exception as error:
            for payloads in begun:
                self._end(payloads, error)
            raise
        for payloads, result in zip(begun, results, strict=True):
            self._end(payloads, result)
        return results

    def _begin(self, deed: Deed) -> list[HostSelection]:
        """Publish the begin of each act; return the payloads of its end, by name."""
        if isinstance(deed, Departure):
            return []
        request = deed.request if isinstance(deed, NamedRequest) else deed
        payload = HostSelection(
            project_id=request.project_id,
            user_id=request.user_id,
            flavor=request.flavor.name,
            count=request.count,
            instance_uuids=list(request.instance_uuids),
        )
        begun = []
        for name in self._names:
            start_id = self._tell(f"{name}.start", payload)
            begun.append(msgspec.structs.replace(payload, start_id=start_id))
        return begun

    def _end(self, payloads: Sequence[HostSelection], result: Result) -> None:
        for name, payload in zip(self._names, payloads, strict=False):  # Departures are not published.
            self._tell(f"{name}.end", _end_payload(payload, result))

    def _tell(self, event_type: str, payload: HostSelection) -> str | None:
        try:
            return self._events.publish(event_type, payload, time_s=self._now_s())
        except Exception as error:  # noqa: BLE001  # a decision does not depend on who hears of it
            log.fault("notify", error)
            return None


def _end_payload(payload: HostSelection, result: Result) -> HostSelection:
    if not isinstance(result, Decision):
        return msgspec.structs.replace(payload, outcome="failed", reason=str(result))
    placed = [
        InstancePlace(instance_uuid=pick.instance_uuid, host=pick.host, node=pick.node, cell=pick.cell)
        for pick in result.picks
    ]
    return msgspec.structs.replace(
        payload, outcome=result.outcome, decision_uuid=result.uuid, reason=result.reason, placed=placed
    )
