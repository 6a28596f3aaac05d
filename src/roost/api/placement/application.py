"""From a request to an answer: authentication, version, route, authorization, handler."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from roost.api import problems
from roost.api.accept_header import acceptable_types
from roost.api.answer_options import DEFAULTS, Options
from roost.api.changes.change_note import note_of
from roost.api.http import (
    JSON,
    Admission,
    Batch,
    Identify,
    Identity,
    Request,
    Response,
    not_acceptable,
    require_json,
    require_reader,
)
from roost.api.placement import ownership, routes
from roost.api.placement.name_quota import NameQuota
from roost.api.placement.routes import Route
from roost.api.problems import Problem, VersionHeaders
from roost.errors import RoostError
from roost.model.placement import microversions
from roost.model.placement.microversions import Version
from roost.observe import log
from roost.placement.current import Current
from roost.placement.job import Task
from roost.placement.write_plan import Act, Again, Plan

Allows = Callable[[str, Identity, Mapping[str, str]], bool]  # policy, identity, target
_VERSION_HEADER = "openstack-api-version"
_HTML = "text/html"
# The two paths of the list of versions.
_OPEN_PATHS = frozenset({"", "/"})


class Application:
    """The Placement API, without the HTTP around it.

    Args:
        identify: returns the identity of the request headers; None: unknown.
        allows: evaluates policies.
        options: options of responses.
    """

    route_prefix: ClassVar = "/placement"
    path_encoding: ClassVar = "latin-1"  # one character per byte, as in WSGI and so in OpenStack Placement

    def __init__(self, *, identify: Identify, allows: Allows, options: Options = DEFAULTS) -> None:
        self._identify = identify
        self._allows = allows
        self._options = options
        self._new_names = NameQuota()

    def enter(self, request: Request) -> Response | Task[Response]:
        """Admit a request with its body, and return its answer or its task."""
        admitted = self.admit(request)
        entered = admitted if isinstance(admitted, Response) else admitted.enter()
        assert not isinstance(entered, Batch), "the Placement API has no batches"
        return entered

    def is_open(self, request: Request) -> bool:
        """Return whether a request needs no authentication."""
        return request.path in _OPEN_PATHS

    def admit(self, request: Request) -> Response | Admission:
        """Check identity, path and policy before the body is read; return an error or the next step."""
        try:
            route = self._admit(request)
        except Exception as error:  # noqa: BLE001  # every request gets an answer
            return self.fail(request, error)
        handler = route.handler

        # The annotation is quoted, because otherwise each request would evaluate it.
        def task(current: Current) -> "Response | Plan[Response] | Act[Response] | Again":
            ownership.check(request, current.state)
            self._new_names.check(request, current.state)
            return request.sign(handler(request, current), current)

        return Admission(enter=lambda: task)

    def _admit(self, request: Request) -> Route:
        """Authenticate a request, and find its version and route.

        Raises:
            Problem: the request is not allowed, or has no route.
        """
        if request.identity is None:
            request.identity = self._identify(request.headers)
        if request.identity is None and not self.is_open(request):
            raise Problem(401, version_headers="none")
        request.version = _parse_version(request)
        request.options = self._options
        _check_length(request)
        route = _find_route(request)
        if not route.is_silent(request.version):
            if request.method == "GET":
                require_reader(request)
            elif request.method in {"POST", "PUT"}:
                require_json(request)
        if not request.supports(route.since):
            raise Problem(404)
        request.work = route.work
        request.change = note_of(route.policy, request.parameters)
        self._check_policy(route, request)
        return route

    def _check_policy(self, route: Route, request: Request) -> None:
        if route.policy is None:
            return
        assert request.identity is not None
        identity = request.identity
        if identity.hosts:  # ``ownership`` restricts its writes.
            identity = replace(identity, roles=identity.roles | {"service"})
        project_id = request.values("project_id")[-1:] if "project_id" in request.query_string else []
        if not self._allows(route.policy, identity, {"project_id": "".join(project_id)}):
            # For a system-scoped token, the error text of OpenStack Placement is just the name of the policy.
            is_system_scoped = request.identity.is_system_scoped
            text = route.policy if is_system_scoped else f"Policy does not allow {route.policy} to be performed."
            raise Problem(403, text, version_headers="version")

    def refuse(self, request: Request, response: Response) -> Response:
        """Complete the response to an unknown client."""
        return self.finish(request, response, version_headers="none")

    def finish(self, request: Request, response: Response, *, version_headers: VersionHeaders = "all") -> Response:
        """Add the headers of every response."""
        headers = dict(response.headers)
        if version_headers != "none":
            headers[_VERSION_HEADER] = f"placement {request.version}"
        if version_headers == "all":
            headers["vary"] = _VERSION_HEADER
        headers["x-openstack-request-id"] = request.request_id
        headers["content-length"] = str(len(response.body))
        return Response(status=response.status, body=response.body, headers=headers)

    def fail(self, request: Request, error: Exception) -> Response:
        """Return an error as a response in a format that the client accepts; log a fault of the server."""
        if not isinstance(error, RoostError):
            log.fault(request.request_id, error)
        problem = problems.problem_of(error)
        request.problem = problem.text
        content_type, body = _format_error(request, problem)
        headers = {**problem.headers, "content-type": content_type}
        response = Response(status=problem.status, body=body, headers=headers)
        return self.finish(request, response, version_headers=problem.version_headers)


def _parse_version(request: Request) -> Version:
    try:
        return microversions.parse_version(request.headers.get(_VERSION_HEADER))
    except microversions.InvalidVersion as error:
        text = f"Invalid microversion: invalid version string: {error}"
        raise Problem(400, text, version_headers="none") from None
    except microversions.UnknownVersion as error:
        raise not_acceptable(
            request,
            f"Invalid microversion: Unacceptable version header: {error}",
            more={"max_version": str(microversions.NEWEST), "min_version": str(microversions.OLDEST)},
            version_headers="none",
        ) from None


def _check_length(request: Request) -> None:
    length = request.headers.get("content-length")
    if not length:
        return
    try:
        size = int(length)
    except ValueError:
        raise Problem(400, "content-length header must be an integer", version_headers="version") from None
    if size > 0 and not request.headers.get("content-type"):
        raise Problem(400, "content-type header required when content-length > 0", version_headers="version")


def _find_route(request: Request) -> Route:
    """Return the route of a request, and set its path parameters."""
    route_match = routes.find(request.path)
    if route_match is None:
        raise Problem(404, version_headers="version")
    methods, request.parameters = route_match
    request.route = routes.path_of(methods)
    route = methods.get(request.method)
    is_too_new = route is not None and not request.supports(route.since)
    preamble = f"The method {request.method} is not allowed for this resource. "
    if route is None:
        text = "The method specified is not allowed for this resource."
        raise Problem(405, text, preamble=preamble, headers={"allow": ", ".join(methods)})
    if is_too_new and route.is_method_new:
        raise Problem(405, preamble=preamble)
    if is_too_new and not route.is_media_first:
        raise Problem(404)
    return route


def _format_error(request: Request, problem: Problem) -> tuple[str, bytes]:
    """Return the media type and the body of an error."""
    if request.method == "HEAD":
        return f"{_HTML}; charset=UTF-8", b""
    accept = request.headers.get("accept")
    # A client that accepts any type is probably a program, not a browser.
    accepted = [JSON] if accept in {None, "", "*/*"} else acceptable_types(accept, [_HTML, JSON])
    if not accepted:
        return "text/plain; charset=UTF-8", problems.as_text(problem)
    if accepted[0] == _HTML:
        return f"{_HTML}; charset=UTF-8", problems.as_html(problem)
    has_code = problem.version_headers != "none" and request.supports(microversions.ERROR_CODES)
    return JSON, problems.as_json(problem, request_id=request.request_id, has_code=has_code)
