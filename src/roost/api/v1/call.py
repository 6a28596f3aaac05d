"""The input of a handler in the thread that owns the columns, and JSON responses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from roost.api.http import Identity, Request, Response, TooSlow
from roost.api.problems import Problem
from roost.api.v1 import permission
from roost.api.v1.agents.agent_registry import AgentRegistry
from roost.api.v1.fleet.fleet_port import FleetPort
from roost.api.v1.permission import Allows
from roost.api.v1.policies import ALL_PROJECTS
from roost.api.v1.product_port import Product, ReportSettings
from roost.observe.event_buffer import Events
from roost.placement.current import Current
from roost.placement.write_plan import Act, Again, Plan

JSON = "application/json"
EVENT_STREAM = "text/event-stream"

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The input of a handler."""

    request: Request
    product: Product
    columns: Current | None  # None: the handler runs on the event loop, beside the thread that owns them
    events: Events
    fleet: FleetPort | None  # None: this process has no snapshots of the fleet
    agents: AgentRegistry
    body: Any  # an instance of the route's body type; None: the route has none
    query: Any  # an instance of the route's query type; None: the route has none
    allows: Allows
    report_settings: ReportSettings | None  # None: this process does not know the sources of its settings

    @property
    def current(self) -> Current:
        """The columns and the store behind them."""
        assert self.columns is not None, "the route of this handler does not need columns"
        return self.columns

    @property
    def name(self) -> str:
        """The path parameter ``id``."""
        return self.parameter("id")

    def parameter(self, name: str) -> str:
        """Return a path parameter."""
        return self.request.parameters[name]

    @property
    def identity(self) -> Identity:
        """The identity of the client."""
        assert self.request.identity is not None, "the application refuses unknown clients"
        return self.request.identity

    def check_allowed(self, policy: str) -> None:
        """Refuse a call that a policy does not allow.

        Raises:
            Problem: 403.
        """
        permission.check(self.allows, policy, self.identity)

    @property
    def project(self) -> str | None:
        """The only project whose instances, decisions, groups and operations the client may see; None: all projects.

        Raises:
            Problem: 403, the client has no project.
        """
        if self.can_see_all:
            return None
        if not self.identity.project_id:
            raise Problem(
                403, f"the client has no project, and policy {ALL_PROJECTS} does not allow it to see all projects"
            )
        return self.identity.project_id

    @property
    def can_see_all(self) -> bool:
        """Whether the client may see every project."""
        return permission.is_allowed(self.allows, ALL_PROJECTS, self.identity)

    def can_see(self, project_id: str) -> bool:
        """Return whether the client may see a project; a client without a project sees none."""
        return self.can_see_all or (bool(project_id) and self.identity.project_id == project_id)

    @property
    def owner(self) -> str:
        """The client as one text, which scopes its idempotency keys."""
        identity = self.identity
        return f"{identity.user_id}\0{identity.project_id}"

    @property
    def key(self) -> str | None:
        """The idempotency key of the request."""
        return self.request.headers.get("idempotency-key")

    def check_host(self, host: str) -> None:
        """Refuse a host outside the bounds of the client's token.

        Raises:
            Problem: 403.
        """
        identity = self.identity
        if not identity.may_touch(host):
            raise Problem(403, f"this token may only touch {identity.bounds}, not {host}")

    def note(self, kind: str = "", *objects: str, **details: str) -> None:
        """Describe the change of this call; see ``ChangeNote.set``."""
        self.request.note(kind, *objects, **details)

    def note_object(self, name: str, details: Mapping[str, str]) -> None:
        """Describe the change of one object; see ``ChangeNote.set_object``."""
        self.request.note_object(name, details)

    def require_thread(self) -> None:
        """Leave this call to the thread that owns the columns, even if it was fast the last time.

        Raises:
            TooSlow: the event loop is answering this call itself.
        """
        if self.request.is_at_once:
            raise TooSlow


Answer = Response | Plan[Response] | Act[Response] | Again
Handler = Callable[[Call], Answer]


def plan_response(plan: Plan[Any], response: Response) -> Plan[Response]:
    """Return a plan with the same writes, and a response as its answer."""
    return Plan(
        answer=response, writes=plan.writes, work=plan.work, reads_work=plan.reads_work, on_commit=plan.on_commit
    )


def json_response(value: msgspec.Struct, *, status: int = 200, location: str = "") -> Response:
    """Return a response with a JSON body.

    Args:
        location: URL of a new resource; empty: none.
    """
    headers = {"content-type": JSON}
    if location:
        headers["location"] = location
    return Response(status=status, body=_encoder.encode(value), headers=headers)
