"""From a request to an answer: who asks, in which version, for what, and whether they may."""

import json
import uuid
from collections.abc import Callable, Mapping

from roost.api import problems
from roost.api.acceptable import best_of
from roost.api.placement import routes, versions
from roost.api.placement.request import JSON, Identity, Request, Response
from roost.api.placement.routes import Route
from roost.api.placement.versions import Version
from roost.api.problems import Problem
from roost.errors import BadRequest, RoostError
from roost.placement.current import Current
from roost.placement.plans import Plan
from roost.placement.serving import Task

Identify = Callable[[Mapping[str, str]], Identity | None]
Allows = Callable[[str, Identity, Mapping[str, str]], bool]  # policy, who, what is acted on
_VERSION_HEADER = "openstack-api-version"


class Application:
    """The Placement API, without the HTTP around it.

    Args:
        identify: says from the headers who asks; None: nobody that is known.
        allows: says whether they may.
    """

    def __init__(self, *, identify: Identify, allows: Allows) -> None:
        self._identify = identify
        self._allows = allows

    def enter(self, request: Request) -> Response | Task[Response]:
        """Answer what needs no columns, errors above all; else return what is to be asked of them."""
        try:
            route = self._admit(request)
        except RoostError as error:
            return self.fail(request, error)
        handler = route.handler

        def task(current: Current) -> Response | Plan[Response]:
            return handler(request, current)

        return task

    def _admit(self, request: Request) -> Route:
        """Find who asks, in which version, and for what.

        Raises:
            Problem: they may not, or there is no such thing.
        """
        found = routes.find(request.path)
        is_open = found is not None and all(route.policy is None for route in found[0].values())
        if found is not None:
            request.route = routes.path_of(found[0])
        if request.identity is None:
            request.identity = self._identify(request.headers)
        if request.identity is None and not is_open:
            raise Problem(401)
        request.version = _version(request)
        if found is None:
            raise Problem(404)
        methods, request.parameters = found
        _check_length(request)
        route = methods.get(request.method)
        if route is None or (route.is_method_new and not request.wants(route.since)):
            raise Problem(
                405,
                "The method specified is not allowed for this resource.",
                before=f"The method {request.method} is not allowed for this resource. ",
                headers={"allow": ", ".join(methods)},
            )
        if not request.wants(route.since):
            raise Problem(404)
        self._check_policy(route, request)
        return route

    def _check_policy(self, route: Route, request: Request) -> None:
        if route.policy is None:
            return
        assert request.identity is not None
        try:
            target = {"project_id": dict(request.pairs()).get("project_id", "")}
        except BadRequest:
            target = {"project_id": ""}  # The handler says what is wrong, to those who may hear it.
        if not self._allows(route.policy, request.identity, target):
            raise Problem(403, f"Policy does not allow {route.policy} to be performed.")

    def finish(self, request: Request, response: Response) -> Response:
        """Return an answer with the headers that every answer has."""
        headers = dict(response.headers)
        headers[_VERSION_HEADER] = f"placement {request.version}"
        headers["vary"] = _VERSION_HEADER
        headers["x-openstack-request-id"] = request.request_id
        headers["content-length"] = str(len(response.body))
        return Response(status=response.status, body=response.body, headers=headers)

    def fail(self, request: Request, error: RoostError) -> Response:
        """Return an error as the client reads it best."""
        problem = problems.problem_of(error)
        content_type, body = _told(request, problem)
        headers = {**problem.headers, "content-type": content_type}
        response = Response(status=problem.status, body=body, headers=headers)
        return self.refuse(request, response) if problem.status == 401 else self.finish(request, response)

    def refuse(self, request: Request, response: Response) -> Response:
        """Return the answer to somebody unknown: no version has been asked for yet."""
        finished = self.finish(request, response)
        kept = {name: value for name, value in finished.headers.items() if name not in {"vary", _VERSION_HEADER}}
        return Response(status=finished.status, body=finished.body, headers=kept)


def new_request_id() -> str:
    """Return what names a request in logs and answers."""
    return f"req-{uuid.uuid4()}"


def _version(request: Request) -> Version:
    header = request.headers.get(_VERSION_HEADER)
    try:
        version = versions.asked(header)
    except versions.InvalidVersion as error:
        raise Problem(400, f"Invalid microversion: invalid version string: {error}") from None
    if version is None:
        raise Problem(406, f"Invalid microversion: Unacceptable version header: {header}")
    return version


def _check_length(request: Request) -> None:
    length = request.headers.get("content-length")
    if not length:
        return
    try:
        size = int(length)
    except ValueError:
        raise Problem(400, "content-length header must be an integer") from None
    if size and "content-type" not in request.headers:
        raise Problem(400, "content-type header required when content-length > 0")


def _told(request: Request, problem: Problem) -> tuple[str, bytes]:
    accept = request.headers.get("accept", "")
    form = JSON if accept in {"", "*/*"} else best_of(("text/html", JSON), accept)
    if form is None:
        return "text/plain; charset=UTF-8", problems.as_text(problem)
    if form != JSON:
        return "text/html; charset=UTF-8", problems.as_html(problem)
    if problem.status == 401:
        return JSON, problems.as_message(problem)
    told: dict[str, object] = {
        "status": problem.status,
        "title": problems.title_of(problem.status),
        "detail": problems.detail_of(problem),
    }
    if request.wants(versions.ERROR_CODES):
        told["code"] = problem.code or "placement.undefined_code"
    told["request_id"] = request.request_id
    return JSON, json.dumps({"errors": [told]}).encode()
