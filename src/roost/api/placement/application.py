"""From a request to an answer: who asks, in which version, for what, and whether they may."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from roost.api import problems, versions
from roost.api.accept_header import acceptable_types
from roost.api.answer_options import DEFAULTS, Options
from roost.api.http import (
    JSON,
    Admission,
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
from roost.api.versions import Version
from roost.errors import RoostError
from roost.observe import log
from roost.placement.current import Current
from roost.placement.deciding_thread import Task
from roost.placement.write_plan import Plan

Allows = Callable[[str, Identity, Mapping[str, str]], bool]  # policy, who, what is acted on
_VERSION_HEADER = "openstack-api-version"
_HTML = "text/html"


class Application:
    """The Placement API, without the HTTP around it.

    Args:
        identify: says from the headers who asks; None: nobody that is known.
        allows: says whether they may.
        options: what answers follow.
    """

    # The list of versions, and only under these names.
    open_paths: ClassVar = frozenset({"", "/"})
    path_encoding: ClassVar = "latin-1"  # a letter a byte, as WSGI does, and so as clients of this API know it

    def __init__(self, *, identify: Identify, allows: Allows, options: Options = DEFAULTS) -> None:
        self._identify = identify
        self._allows = allows
        self._options = options
        self._new_names = NameQuota()

    def enter(self, request: Request) -> Response | Task[Response]:
        """Admit a request whose body is there, and return its answer or its task."""
        admitted = self.admit(request)
        return admitted if isinstance(admitted, Response) else admitted.enter()

    def admit(self, request: Request) -> Response | Admission:
        """Check who asks for what before the body is read; return an error, or how to go on."""
        try:
            route = self._admit(request)
        except Exception as error:  # noqa: BLE001  # everybody gets an answer
            return self.fail(request, error)
        handler = route.handler

        # Quoted, or it would be worked out anew for each request.
        def task(current: Current) -> "Response | Plan[Response]":
            ownership.check(request, current.state)
            self._new_names.check(request, current.state)
            return handler(request, current)

        return Admission(enter=lambda: task)

    def _admit(self, request: Request) -> Route:
        """Find who asks, in which version, and for what.

        Raises:
            Problem: they may not, or there is no such thing.
        """
        if request.identity is None:
            request.identity = self._identify(request.headers)
        if request.identity is None and request.path not in self.open_paths:
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
        self._check_policy(route, request)
        return route

    def _check_policy(self, route: Route, request: Request) -> None:
        if route.policy is None:
            return
        assert request.identity is not None
        who = request.identity
        if who.hosts:  # What it may write is told by whose it is: see ``ownership``.
            who = replace(who, roles=who.roles | {"service"})
        project_id = request.values("project_id")[-1:] if "project_id" in request.query_string else []
        if not self._allows(route.policy, who, {"project_id": "".join(project_id)}):
            # Whoever asks for the system instead of a project is refused in fewer words.
            is_system_scoped = request.identity.is_system_scoped
            text = route.policy if is_system_scoped else f"Policy does not allow {route.policy} to be performed."
            raise Problem(403, text, version_headers="version")

    def refuse(self, request: Request, response: Response) -> Response:
        """Return an answer to somebody who is not known."""
        return self.finish(request, response, version_headers="none")

    def finish(self, request: Request, response: Response, *, version_headers: VersionHeaders = "all") -> Response:
        """Return an answer with the headers that every answer has."""
        headers = dict(response.headers)
        if version_headers != "none":
            headers[_VERSION_HEADER] = f"placement {request.version}"
        if version_headers == "all":
            headers["vary"] = _VERSION_HEADER
        headers["x-openstack-request-id"] = request.request_id
        headers["content-length"] = str(len(response.body))
        return Response(status=response.status, body=response.body, headers=headers)

    def fail(self, request: Request, error: Exception) -> Response:
        """Return an error as the client reads it best; what it is not told goes to the log."""
        if not isinstance(error, RoostError):
            log.fault(request.request_id, error)
        problem = problems.problem_of(error)
        content_type, body = _format_error(request, problem)
        headers = {**problem.headers, "content-type": content_type}
        response = Response(status=problem.status, body=body, headers=headers)
        return self.finish(request, response, version_headers=problem.version_headers)


def _parse_version(request: Request) -> Version:
    try:
        return versions.parse_version(request.headers.get(_VERSION_HEADER))
    except versions.InvalidVersion as error:
        text = f"Invalid microversion: invalid version string: {error}"
        raise Problem(400, text, version_headers="none") from None
    except versions.UnknownVersion as error:
        raise not_acceptable(
            request,
            f"Invalid microversion: Unacceptable version header: {error}",
            more={"max_version": str(versions.NEWEST), "min_version": str(versions.OLDEST)},
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
    """Find what is asked for, and write down the parameters in its path."""
    found = routes.find(request.path)
    if found is None:
        raise Problem(404, version_headers="version")
    methods, request.parameters = found
    request.route = routes.path_of(methods)
    route = methods.get(request.method)
    is_too_new = route is not None and not request.supports(route.since)
    before = f"The method {request.method} is not allowed for this resource. "
    if route is None:
        text = "The method specified is not allowed for this resource."
        raise Problem(405, text, before=before, headers={"allow": ", ".join(methods)})
    if is_too_new and route.is_method_new:
        raise Problem(405, before=before)
    if is_too_new and not route.is_media_first:
        raise Problem(404)
    return route


def _format_error(request: Request, problem: Problem) -> tuple[str, bytes]:
    """Return the media type and the body of an error."""
    if request.method == "HEAD":
        return f"{_HTML}; charset=UTF-8", b""
    accept = request.headers.get("accept")
    # Whoever takes anything is a program.
    liked = [JSON] if accept in {None, "", "*/*"} else acceptable_types(accept, [_HTML, JSON])
    if not liked:
        return "text/plain; charset=UTF-8", problems.as_text(problem)
    if liked[0] == _HTML:
        return f"{_HTML}; charset=UTF-8", problems.as_html(problem)
    has_code = problem.version_headers != "none" and request.supports(versions.ERROR_CODES)
    return JSON, problems.as_json(problem, request_id=request.request_id, has_code=has_code)
