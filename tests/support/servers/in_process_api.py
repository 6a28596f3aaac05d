"""The Placement API in process without sockets; application, thread and columns are those of the HTTP server."""

import json
from contextlib import contextmanager

from roost.api.access.authentication import trust_headers
from roost.api.access.policy import Policy
from roost.api.asgi import Api
from roost.api.http import Batch, Request, Response, new_request_id
from roost.api.placement.application import Application
from roost.api.v1 import application as v1
from roost.api.v1.agents.agent_registry import AgentRegistry
from roost.api.v1.agents.wakeups import ENDS, Wakeups
from roost.app import open_product
from roost.app.database_choice import setting_rows
from roost.errors import RoostError
from roost.machine import SystemClock
from roost.model.settings.roost_settings import Settings
from roost.model.settings.setting_rows import SettingsReport
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.placement_service import Placement
from roost.store.memory_store import MemoryStore

NEWEST = "1.39"
# Paths of /v1 whose POST changes nothing.
READS_BY_POST = {
    "/decisions/{id}/replay",
    "/capacity",
    "/capacity/columns",
    "/comparisons",
    "/explanations",
    "/plans/balance",
    "/plans/consolidate",
    "/plans/drain",
    "/plans/make-room",
}


class DecodedResponse:
    """A decoded response."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = dict(response.headers)
        self.body = response.body
        is_json = response.headers.get("content-type") in {"application/json", "application/problem+json"}
        self.json = json.loads(response.body) if is_json and response.body else None

    @property
    def text(self):
        """The detail of an error, without the common prefix of its status."""
        return self.json["errors"][0]["detail"].partition("\n\n ")[2].removesuffix("  ")

    @property
    def code(self):
        """The error code."""
        return self.json["errors"][0]["code"]


class ApiClient:
    """A client with a method for each HTTP method; ``body`` is bytes, or is sent as JSON."""

    def __init__(self, application: Api, serving: Serving) -> None:
        self.application = application
        self.serving = serving

    def ask(self, method, url, body=None, *, version=NEWEST, headers=None, prefix=""):
        """Send one request, as an administrator unless ``headers`` say otherwise."""
        request = self.request(method, url, body, version=version, headers=headers, prefix=prefix)
        task = self.application.enter(request)
        if isinstance(task, Response):
            return DecodedResponse(task)
        if isinstance(task, Batch):
            responses = [self._answer(part, each) for part, each in task.parts]
            return DecodedResponse(self.application.finish(request, task.join(responses)))
        return DecodedResponse(self._answer(request, task))

    def _answer(self, request, task):
        if isinstance(task, Response):
            return task
        try:
            return self.application.finish(request, self.serving.run(task))
        except RoostError as error:
            return self.application.fail(request, error)

    def request(self, method, url, body=None, *, version=NEWEST, headers=None, prefix=""):
        """Return a request as the network delivers it."""
        path, _, query = url.partition("?")
        sent = {"x-auth-token": "admin", "openstack-api-version": f"placement {version}", "host": "localhost"}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        if data:
            sent |= {"content-type": "application/json", "content-length": str(len(data))}
        sent |= headers or {}
        return Request(
            method=method,
            path=path,
            query_string=query,
            headers=sent,
            body=data,
            prefix=prefix,
            host_url="http://localhost",
            request_id=new_request_id(),
        )

    def get(self, url, **options):
        """Send a GET request."""
        return self.ask("GET", url, **options)

    def put(self, url, body=None, **options):
        """Send a PUT request."""
        return self.ask("PUT", url, body, **options)

    def post(self, url, body=None, **options):
        """Send a POST request."""
        return self.ask("POST", url, body, **options)

    def delete(self, url, **options):
        """Send a DELETE request."""
        return self.ask("DELETE", url, **options)


@contextmanager
def placement_api(store=None, *, identify=trust_headers, policy=None, clock=None):
    """Open the API over a store; by default a new store in memory, and identities from request headers."""
    current = Current(store or MemoryStore(), clock=clock)
    Placement(current)
    serving = Serving(current)
    try:
        yield ApiClient(Application(identify=identify, allows=(policy or Policy(is_legacy=True)).allows), serving)
    finally:
        serving.stop()


class RoostApi(ApiClient):
    """Roost's own API and its product; during serving, use the product only through ``in_thread``."""

    def __init__(self, product, serving, *, wakeups=None, ends=None, identify=trust_headers, allows=None, clock=None):
        self.agents = AgentRegistry(
            serving, wakeups or Wakeups(100), ends=ends or Wakeups(100, topic=ENDS), clock=clock or SystemClock()
        )
        application = v1.Application(
            product,
            agents=self.agents,
            identify=identify,
            allows=allows,
            report_settings=lambda settings: SettingsReport(rows=setting_rows(settings, {})),
        )
        super().__init__(application, serving)
        self.product = product

    def in_thread(self, act):
        """Call ``act`` with the product in the serving thread."""
        return self.serving.run(lambda _current: act(self.product))


@contextmanager
def roost_api(*fleets, url="sqlite://", settings=None, identify=trust_headers, policy=None):
    """Open Roost's own API with a fleet; by default over a new store in memory, with the default policies."""
    wakeups, ends = Wakeups(100), Wakeups(100, topic=ENDS)

    def note_work(work):
        wakeups.wake_for(work)
        ends.wake_for(work)

    product, serving = open_product(str(url), settings or Settings(), on_work=note_work)
    try:
        own = RoostApi(product, serving, wakeups=wakeups, ends=ends, identify=identify, allows=policy and policy.allows)
        for fleet in fleets:
            own.in_thread(lambda roost, fleet=fleet: roost.install(fleet))
        yield own
        own.agents.close()
    finally:
        serving.stop()
