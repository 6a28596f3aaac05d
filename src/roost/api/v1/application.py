"""From a request to an answer: authentication, route, authorization, handler. Read this file first."""

from http import HTTPStatus
from typing import Any, ClassVar

from roost.api import problems
from roost.api.access.policy import Policy
from roost.api.changes.change_note import note_of
from roost.api.http import Admission, Batch, Identify, Request, Response, Work
from roost.api.problems import Problem
from roost.api.v1 import idempotency, permission, policies
from roost.api.v1.agents.agent_registry import AgentRegistry
from roost.api.v1.batch_parts import join_batch, split_batch
from roost.api.v1.call import JSON, Call
from roost.api.v1.documents import open_documents
from roost.api.v1.fleet.fleet_port import FleetPort
from roost.api.v1.idempotency import IdempotencyKeys
from roost.api.v1.permission import Allows
from roost.api.v1.product_port import Product, ReportSettings
from roost.api.v1.route import Route
from roost.api.v1.routes import OPEN_OPERATIONS, PATHS, TABLE
from roost.api.v1.wire.decode_body import check_unused, decode_body, decode_query, field_problem
from roost.api.v1.wire.problem_details import CONTENT_TYPE, as_json
from roost.errors import RoostError
from roost.model.settings.notification_settings import Notifications
from roost.observe import log
from roost.observe.event_buffer import Events
from roost.placement.current import Current
from roost.placement.job import Task
from roost.placement.write_plan import Act, Again, Plan

PREFIX = "/v1"
_KEY = "idempotency-key"
_UNKNOWN = "authentication is required: x-auth-token is missing or unknown"


class Application:
    """Roost's own API, without the HTTP around it.

    Args:
        product: the product over the columns of the serving thread.
        agents: waiting polls and heartbeats of agents.
        identify: returns the identity of the request headers; None: unknown.
        allows: evaluates policies; None: the default policies.
        events: notifications of decisions; None: no events.
        auth_strategy: name of the authentication, for clients without a valid token.
        report_settings: reports the settings in force; None: they are not reported.
        fleet: snapshots of the fleet; None: no snapshots.
    """

    path_encoding: ClassVar = "utf-8"
    route_prefix: ClassVar = ""  # its routes have the prefix

    def __init__(
        self,
        product: Product,
        *,
        agents: AgentRegistry,
        identify: Identify,
        allows: Allows | None = None,
        events: Events | None = None,
        auth_strategy: str = "noauth2",
        report_settings: ReportSettings | None = None,
        fleet: FleetPort | None = None,
    ) -> None:
        self._product, self._agents = product, agents
        self._identify = identify
        self._allows = allows or Policy(others=policies.DEFAULTS).allows
        self._keys = IdempotencyKeys()
        self._auth_strategy = auth_strategy
        self._report_settings = report_settings
        self._fleet = fleet
        self._events = events or Events(Notifications(), run="none")

    def enter(self, request: Request) -> Response | Task[Response] | Batch:
        """Admit a request with its body, and return its answer or its work."""
        admitted = self.admit(request)
        return admitted if isinstance(admitted, Response) else admitted.enter()

    def is_open(self, request: Request) -> bool:
        """Return whether a request needs no authentication."""
        return request.path in open_documents.PATHS or (request.method, request.path) in OPEN_OPERATIONS

    def admit(self, request: Request) -> Response | Admission:
        """Check identity, path and policy before the body is read; return an error or the next step."""
        try:
            if request.path in open_documents.PATHS and request.method == "GET":
                request.route = PREFIX + request.path
                return self.finish(request, open_documents.respond(request.path))
            route = self._admit(request)
        except Exception as error:  # noqa: BLE001  # every request gets an answer
            return self.fail(request, error)
        if route.is_batch:
            return Admission(enter=lambda: self._enter_batch(request), body_max_bytes=route.body_max_bytes)
        return Admission(enter=lambda: self._enter(request, route), body_max_bytes=route.body_max_bytes)

    def _enter_batch(self, request: Request) -> Response | Batch:
        """Admit each request of a batch."""
        request.change = None  # Each of its requests has a change of its own.
        try:
            _check_media_type(request)
            check_unused(request, has_body=True, has_query=False)
            parts = split_batch(request)
        except Exception as error:  # noqa: BLE001  # every request gets an answer
            return self.fail(request, error)
        single = TABLE["/decisions"]["POST"]
        return Batch(parts=[(part, self._enter_part(part, single)) for part in parts], join=join_batch)

    def _enter_part(self, part: Request, route: Route) -> Response | Task[Response]:
        """Admit a request of a batch. The client may make it, because the batch has the same policy."""
        part.route, part.change = PREFIX + part.path, note_of(route.policy, {})
        try:
            if _KEY in part.headers:
                idempotency.check(part.headers[_KEY])
        except Exception as error:  # noqa: BLE001  # every request gets an answer
            return self.fail(part, error)
        entered = self._enter(part, route)
        if part.work != "point":
            return self.fail(part, field_problem("$.dry_run", "must be false in a batch"))
        return entered

    def _enter(self, request: Request, route: Route) -> Response | Task[Response]:
        try:
            body, query = _decode_request(request, route)
            request.work = _work_of(route, body, query)
            if getattr(body, "dry_run", False):
                request.change = None
        except Exception as error:  # noqa: BLE001  # every request gets an answer
            return self.fail(request, error)
        handler, keys = route.handler, self._keys if route.is_keyed else None
        if not route.needs_columns:
            return self._answer_at_once(request, route, query)

        # The annotation is quoted: its evaluation for each request would take as long as the rest of this method.
        def task(current: Current) -> "Response | Plan[Response] | Act[Response] | Again":
            call = Call(
                request=request,
                product=self._product,
                columns=current,
                events=self._events,
                fleet=self._fleet,
                agents=self._agents,
                body=body,
                query=query,
                allows=self._allows,
                report_settings=self._report_settings,
            )
            return request.sign(handler(call) if keys is None else keys.answer(call, handler), current)

        return task

    def _answer_at_once(self, request: Request, route: Route, query: Any) -> Response:
        call = Call(
            request=request,
            product=self._product,
            columns=None,
            events=self._events,
            fleet=self._fleet,
            agents=self._agents,
            body=None,
            query=query,
            allows=self._allows,
            report_settings=self._report_settings,
        )
        try:
            response = route.handler(call)
            assert isinstance(response, Response), "it plans nothing without columns"
            return self.finish(request, response)
        except Exception as error:  # noqa: BLE001  # every request gets an answer
            return self.fail(request, error)

    def _admit(self, request: Request) -> Route:
        """Authenticate a request, and find its route.

        Raises:
            Problem: 401, 403, 404 or 405.
        """
        if request.identity is None:
            request.identity = self._identify(request.headers)
        is_open = (request.method, request.path) in OPEN_OPERATIONS
        if request.identity is None and not is_open:
            raise Problem(401, _UNKNOWN)
        route_match = PATHS.find(request.path)
        if route_match is None or "\0" in request.path:
            raise Problem(404, f"there is no {PREFIX}{request.path[:200]}")
        methods, request.parameters = route_match
        request.route = PREFIX + PATHS.path_of(methods)
        route = methods.get(request.method)
        if route is None:
            allowed = ", ".join(methods)
            raise Problem(405, f"{request.route} supports only {allowed}", headers={"allow": allowed})
        request.change = note_of(route.policy, request.parameters)
        if request.identity is not None and not is_open:
            permission.check(self._allows, route.policy, request.identity)
        if route.is_keyed and _KEY in request.headers:
            idempotency.check(request.headers[_KEY])
        return route

    def refuse(self, request: Request, response: Response) -> Response:
        """Complete the response to an unknown client; a 401 gets the form of all errors."""
        if response.status != HTTPStatus.UNAUTHORIZED:
            return self.finish(request, response)
        challenge = {name: text for name, text in response.headers.items() if name == "www-authenticate"}
        return self.fail(request, Problem(401, _UNKNOWN, headers=challenge))

    def finish(self, request: Request, response: Response) -> Response:
        """Add the headers of every response."""
        headers = dict(response.headers)
        headers["x-openstack-request-id"] = request.request_id
        if response.status != 204 and response.stream is None:  # 204 has no body, and a stream no known length.
            headers["content-length"] = str(len(response.body))
        return Response(status=response.status, body=response.body, headers=headers, stream=response.stream)

    def fail(self, request: Request, error: Exception) -> Response:
        """Return an error as problem details; log a fault of the server."""
        if not isinstance(error, RoostError):
            log.fault(request.request_id, error)
        problem = problems.problem_of(error)
        request.problem = problem.text
        headers = {**problem.headers, "content-type": CONTENT_TYPE}
        strategy = self._auth_strategy if problem.status == HTTPStatus.UNAUTHORIZED else ""
        body = as_json(problem, request_id=request.request_id, auth_strategy=strategy)
        return self.finish(request, Response(status=problem.status, body=body, headers=headers))


def _work_of(route: Route, body: Any, query: Any) -> Work:
    """Return the work for an answer; a request that writes needs the deciding thread."""
    if not getattr(body, "dry_run", True):
        return "point"
    return "past" if route.is_long is not None and route.is_long(query) else route.work


def _decode_request(request: Request, route: Route) -> tuple[Any, Any]:
    """Return the body and the query of a route; None where the route has none.

    Raises:
        Problem: 415, the body is not declared as JSON; 400, body or query is invalid, or the route does not read it.
    """
    if route.body is not None:
        _check_media_type(request)
    check_unused(request, has_body=route.body is not None, has_query=route.query is not None)
    body = None if route.body is None else decode_body(request.body, route.body)
    return body, None if route.query is None else decode_query(request.pairs(), route.query)


def _check_media_type(request: Request) -> None:
    if request.body and request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Problem(415, f"the body and its content-type must be {JSON}")
