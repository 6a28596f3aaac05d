"""The calls of Nova's conductors to the topic ``scheduler``: requests become decisions of Roost.

.. code-block:: text

    select_destinations ─▶ read_request_spec     in the thread of the message queue
                        ─▶ NetworkLookup         in its threads, only for requested networks if they may be routed
                        ─▶ plan_group            in the deciding thread, only for a new group or unknown members
                        ─▶ Act                   the decision: hosts, claims and evidence are one commit
                        ─▶ build_selections      or NoValidHost, with Nova's reason
                        ─▶ SelectionNotifier     in a thread of its own, if nova.conf wants notifications
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from roost.api.changes.change_note import ChangeNote
from roost.api.changes.change_row import Author, sign_act
from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict, RoostError, Unavailable
from roost.model.request import Request
from roost.model.writes import Write
from roost.nova.fleet_sync import PREPARATIONS_MAX, plan_group
from roost.nova.instance_sync import plan_departures
from roost.nova.messages.no_valid_host import TOO_FEW, no_valid_host, refusal_reason
from roost.nova.messages.request_spec import SpecRequest
from roost.nova.messages.selection import as_dicts, build_host, build_selections
from roost.nova.neutron.network_lookup import FoundNetwork, NetworkLookup, needs_lookup
from roost.nova.neutron.network_segments import add_segments
from roost.nova.notifications.selection_notifier import Selection, SelectionNotifier
from roost.nova.notifications.spec_payload import SpecChanges
from roost.nova.request_of_call import as_move, read_call, with_known_zone
from roost.nova.rpc.rpc_call import Call
from roost.nova.rpc.rpc_failure import Failure, internal_error
from roost.observe import log
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.write_plan import Act, Plan, Result
from roost.product import Roost
from roost.scheduler.explain.rebuild_check import rebuild_refusal

_CHANGE = "decision.create"
# The answer of a commit before the choice.
_PREPARED = object()


class SchedulerService:
    """Answers the calls of conductors. Its attributes make it an endpoint of the message queue.

    Args:
        roost: the product; only the deciding thread uses it.
        serving: the deciding thread.
        on_hint: called after a message about a change of Nova's databases, with the changed part.
        networks: looks up requested networks; None: no network is routed.
        shows_decision: whether a refusal ends with a pointer to its decision.
        notifier: sends notifications about decisions; None: none are sent.
    """

    topic = "scheduler"
    # The version of nova-scheduler's interface since Nova 17 (Queens). Conductors refuse to use an older one.
    version = minimum_version = "4.5"

    def __init__(
        self,
        roost: Roost,
        serving: Serving,
        *,
        on_hint: Callable[[str], None],
        networks: NetworkLookup | None = None,
        shows_decision: bool = False,
        notifier: SelectionNotifier | None = None,
    ) -> None:
        self._roost = roost
        self._serving = serving
        self._on_hint = on_hint
        self._networks = networks
        self._shows_decision = shows_decision
        self._notifier = notifier

    @property
    def handlers(self) -> Mapping[str, Callable[[Call], None]]:
        """The methods of the topic, by name."""
        hints = {
            "update_aggregates": "aggregates",
            "delete_aggregate": "aggregates",
            "update_instance_info": "instances",
            "delete_instance_info": "instances",
            "sync_instance_info": "instances",
        }
        handlers = {method: partial(self._note_hint, part) for method, part in hints.items()}
        return {"select_destinations": self.select_destinations, **handlers}

    def select_destinations(self, call: Call) -> None:
        """Choose hosts for the instances of a request, and claim their resources.

        Source:
            nova/scheduler/manager.py, select_destinations.
        """
        try:
            spec = read_call(call)
        except BadRequest as error:
            call.fail(no_valid_host(str(error)))
            return
        select_call = _SelectCall(
            self._roost,
            self._serving,
            call,
            spec=spec,
            shows_decision=self._shows_decision,
            notifier=self._notifier,
        )
        if self._networks is not None and needs_lookup(spec, self._roost.settings):
            self._networks.submit(spec.requested_networks, select_call)
        else:
            select_call.submit()

    def _note_hint(self, part: str, call: Call) -> None:
        self._on_hint(part)
        if call.needs_reply:
            call.answer(None)


class _SelectCall:
    """One call in progress: it submits tasks to the deciding thread, and receives their results."""

    def __init__(
        self,
        roost: Roost,
        serving: Serving,
        call: Call,
        *,
        spec: SpecRequest,
        shows_decision: bool,
        notifier: SelectionNotifier | None,
    ) -> None:
        self._roost = roost
        self._serving = serving
        self._call = call
        self._spec = spec
        self._shows_decision = shows_decision
        self._notifier = notifier
        self._started_s = 0.0 if notifier is None else notifier.now_s()
        self._selection: Selection | None = None  # for notifications; None: none is due
        self._found: tuple[FoundNetwork, ...] = ()
        self._preparations = 0  # commits before the choice
        self._is_move = False  # whether the instance has allocations, although it is unknown here

    def submit(self) -> None:
        """Queue the next task."""
        try:
            self._serving.submit(self._decide, self)
        except Unavailable as error:
            self.set_exception(error)

    def take_networks(self, found: tuple[FoundNetwork, ...]) -> None:
        """Go on with the requested networks."""
        self._found = found
        self.submit()

    def refuse(self, failure: Failure) -> None:
        """Send the failure of the lookup of networks."""
        self._call.fail(failure)

    def set_running_or_notify_cancel(self) -> bool:
        """Return True: a conductor cannot withdraw a call."""
        return True

    def set_result(self, result: object, /) -> None:
        """Send the answer, or go on once the server group is in the columns."""
        if result is _PREPARED:
            self._preparations += 1
            self.submit()
            return
        if isinstance(result, Failure):
            self._call.fail(result)
        else:
            self._call.answer(result)
        if self._notifier is not None and self._selection is not None:
            self._notifier.notify(self._call, self._selection, started_s=self._started_s)

    def set_exception(self, exception: BaseException, /) -> None:
        """Send an error; it becomes the fault of the instances.

        Only a remote Placement knows for certain whether an instance has allocations. If the instance has some, the
        request is decided again, as a move.
        """
        if self._may_be_move(exception):
            self._is_move = True
            self.submit()
            return
        if isinstance(exception, RoostError):
            self._call.fail(no_valid_host(str(exception)))
        else:
            log.fault("select_destinations", exception)
            self._call.fail(internal_error(f"the scheduler failed: {type(exception).__name__}"))

    def _decide(self, current: Current) -> object:
        """Prepare the server group, check a rebuild, or decide; a task of the deciding thread."""
        if self._spec.is_rebuild:
            return self._check_rebuild(current.state)
        request = add_segments(self._spec.request, self._found, state=current.state, remote=self._roost.remote)
        if isinstance(request, Failure):
            return request
        request = with_known_zone(request, current.state)
        writes = self._prepare(current, request) if self._preparations < PREPARATIONS_MAX else ()
        if writes:
            return Plan(answer=_PREPARED, writes=writes)
        if not request.instance_uuids:
            return self._answer(current.state, self._roost.decide(request, dry_run=True))
        act: Act[object] = Act(
            deed=as_move(request, current.state, is_move=self._is_move),
            answer=lambda result: self._answer(current.state, result),
        )
        return sign_act(act, ChangeNote(_CHANGE), self._author(), current=current)

    def _prepare(self, current: Current, request: Request) -> tuple[Write, ...]:
        """Plan what the columns need before the choice: no old instances, and the server group."""
        writes: tuple[Write, ...] = ()
        if self._roost.remote is not None and len(request.instance_uuids) > 1:
            # These instances are new. What is known of them is out of date, and must not refuse the request.
            writes = plan_departures(current.state, request.instance_uuids, before_s=current.state.now_s)
        if not writes and self._spec.group is not None:
            writes = plan_group(current, self._spec.group)
        return writes

    def _may_be_move(self, exception: BaseException) -> bool:
        is_known = isinstance(exception, Conflict) and exception.problem_type == "already-exists"
        has_one = len(self._spec.request.instance_uuids) == 1
        return is_known and has_one and self._roost.remote is not None and not self._is_move

    def _check_rebuild(self, state: State) -> object:
        """Return the host of an instance if its filters accept the new image."""
        request, settings = self._spec.request, self._roost.settings
        self._note_selection(state, is_granted=False)
        row = _row_of_rebuild(state, request)
        if row is None:
            return no_valid_host(TOO_FEW)
        reason = rebuild_refusal(
            self._roost.rules.filters, request, state=state, node=state.hosts.nodes[row], now_s=state.now_s
        )
        if reason:
            return no_valid_host(TOO_FEW)
        self._note_selection(state, is_granted=True, hosts=(state.hosts.names[row],))
        zone = settings.default.default_availability_zone
        return self._in_form([[build_host(state, row, default_zone=zone)]])

    def _answer(self, state: State, result: Result) -> object:
        """Return the selections of a decision, or its refusal."""
        if isinstance(result, Exception):
            raise result
        assert result is not None, "a request has a decision"
        if not result.is_granted:
            reason = refusal_reason(result)
            if reason == TOO_FEW:  # Otherwise Nova refuses the request before it chooses hosts.
                self._note_selection(state, is_granted=False)
            return no_valid_host(f"{reason} (roost why {result.uuid})" if self._shows_decision else reason)
        self._note_selection(state, is_granted=True, hosts=tuple(pick.host for pick in result.picks))
        zone = self._roost.settings.default.default_availability_zone
        has_alternates = bool(self._call.args.get("return_alternates")) and bool(self._call.args.get("return_objects"))
        return self._in_form(build_selections(result, state, default_zone=zone, has_alternates=has_alternates))

    def _note_selection(self, state: State, *, is_granted: bool, hosts: tuple[str, ...] = ()) -> None:
        if self._notifier is None:
            return
        changes = SpecChanges()
        if not self._spec.is_rebuild:  # Nova changes nothing in its request.
            request = with_known_zone(self._spec.request, state)
            changes = self._notifier.find_changes(request, state, self._roost.settings)
        self._selection = Selection(is_granted=is_granted, changes=changes, hosts=hosts)

    def _in_form(self, selections: list[list[dict[str, Any]]]) -> object:
        return selections if self._call.args.get("return_objects") else as_dicts(selections)

    def _author(self) -> Author:
        context = self._call.context
        return Author(
            user_id=context.user_id or "",
            project_id=context.project_id or "",
            roles=frozenset(context.roles),
            request_id=context.global_request_id or context.request_id or "",
        )


def _row_of_rebuild(state: State, request: Request) -> int | None:
    """Return the host of the instance of a rebuild, by its names in the request."""
    hosts = state.hosts
    return next(
        (
            row
            for name in request.force_hosts
            for row in hosts.rows_of_name.get(name.lower(), ())
            if hosts.alive.each[row] and (not request.force_nodes or hosts.nodes[row] in request.force_nodes)
        ),
        None,
    )
