"""One request to the API on its way through the thread that owns the columns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from roost.api.http import Identity, Request, Response, TooSlow
from roost.api.problems import Problem
from roost.api.v1 import permission
from roost.api.v1.agent_registry import AgentRegistry
from roost.api.v1.idempotency import IdempotencyKeys
from roost.api.v1.permission import Allows
from roost.api.v1.policies import ALL_PROJECTS
from roost.api.v1.product_port import Product
from roost.observe.event_buffer import Events
from roost.placement.current import Current
from roost.placement.write_plan import Act, Again, Plan

JSON = "application/json"
EVENT_STREAM = "text/event-stream"

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a handler is given."""

    request: Request
    product: Product
    current: Current
    keys: IdempotencyKeys
    events: Events
    agents: AgentRegistry
    body: Any  # of the type that the route names; None: it names none
    query: Any  # likewise
    allows: Allows

    @property
    def name(self) -> str:
        """The parameter ``id`` in the path."""
        return self.parameter("id")

    def parameter(self, name: str) -> str:
        """Return a parameter in the path."""
        return self.request.parameters[name]

    @property
    def identity(self) -> Identity:
        """Who asks."""
        assert self.request.identity is not None, "nobody unknown comes so far"
        return self.request.identity

    def check_allowed(self, policy: str) -> None:
        """Refuse what a policy does not allow.

        Raises:
            Problem: 403.
        """
        permission.check(self.allows, policy, self.identity)

    @property
    def project(self) -> str | None:
        """The only project of which whoever asks sees instances, decisions, groups and operations; None: of all.

        Raises:
            Problem: 403, whoever asks is of no project.
        """
        if self.can_see_all:
            return None
        if not self.identity.project_id:
            raise Problem(403, f"name a project: policy {ALL_PROJECTS} does not allow you to see all")
        return self.identity.project_id

    @property
    def can_see_all(self) -> bool:
        """Whether whoever asks sees what is of any project."""
        return permission.is_allowed(self.allows, ALL_PROJECTS, self.identity)

    def can_see(self, project_id: str) -> bool:
        """Say whether whoever asks may see what is of a project; whoever is of none sees nothing."""
        return self.can_see_all or (bool(project_id) and self.identity.project_id == project_id)

    @property
    def owner(self) -> str:
        """Who asks, in one word: keys of one are none of another's."""
        who = self.identity
        return f"{who.user_id}\0{who.project_id}"

    @property
    def key(self) -> str | None:
        """The idempotency key that came with it."""
        return self.request.headers.get("idempotency-key")

    def check_host(self, host: str) -> None:
        """Refuse what is about a host that the token of whoever asks is not for.

        Raises:
            Problem: 403.
        """
        who = self.identity
        if not who.may_touch(host):
            raise Problem(403, f"this token may only touch {who.bounds}, not {host}")

    def require_thread(self) -> None:
        """Let nobody but the thread that owns the columns answer this, however quick it was the last time.

        Raises:
            TooSlow: somebody else is about to.
        """
        if self.request.is_at_once:
            raise TooSlow


Handler = Callable[[Call], Response | Plan[Response] | Act[Response] | Again]


def plan_response(plan: Plan[Any], response: Response) -> Plan[Response]:
    """Return a plan whose answer is told over HTTP."""
    return Plan(answer=response, writes=plan.writes, work=plan.work, reads_work=plan.reads_work, told=plan.told)


def json_response(value: msgspec.Struct, *, status: int = 200, location: str = "") -> Response:
    """Return an answer with a body; ``location`` is the URL of what was made."""
    headers = {"content-type": JSON}
    if location:
        headers["location"] = location
    return Response(status=status, body=_encoder.encode(value), headers=headers)
