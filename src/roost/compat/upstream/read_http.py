"""Reads a Placement through its API, in the newest microversion, over a few connections."""

import http.client
import json
import queue
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, TypeVar
from urllib.parse import urlsplit

from roost.compat.upstream.placement_world import Consumer, Offer, Progress, Provider, World, canonical_uuid, offer_of
from roost.errors import BadRequest, Conflict, Unavailable
from roost.model.placement.microversions import CONSUMER_GENERATIONS, NEWEST
from roost.model.placement.placement_api import newest_minor
from roost.placement.writes.claims import UNKNOWN_TYPE

_CONNECTIONS = 4
_TIMEOUT_S = 60
_READS_MAX = 3
_OLDEST_MINOR = CONSUMER_GENERATIONS.minor  # microversion 1.x with generations of consumers
_TYPES_MINOR = 38  # microversion 1.x with types of consumers
_FIELDS = Offer.__struct_fields__
T = TypeVar("T")
R = TypeVar("R")


def read_http(url: str, *, headers: Mapping[str, str], progress: Progress) -> World:
    """Read all data of a Placement.

    Other clients may write during the read. If the list of providers has changed at the end, everything is read again.
    The API does not list unused aggregates, projects and users.

    Args:
        url: URL of the API, without ``/resource_providers``.
        headers: headers for authentication.

    Raises:
        BadRequest: the URL is not a Placement or its version is too old, or access is denied.
        Conflict: the source keeps changing.
        Unavailable: the source does not answer.
    """
    with closing(_Client(url, headers)) as client, ThreadPoolExecutor(_CONNECTIONS) as pool:
        for _ in range(_READS_MAX):
            listing = client.providers()
            world = _read(client, pool, listing, progress)
            if world is not None and client.providers() == listing:
                return world
    raise Conflict("the source is being written while it is read: stop its writers, or read its database instead")


class _Client:
    """An HTTP client with one connection per concurrent request."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        if parts.hostname is None:
            raise BadRequest("the URL of the source has no host")
        self._prefix = parts.path.rstrip("/")
        is_tls = parts.scheme == "https"
        self._connect: Callable[[], http.client.HTTPConnection] = lambda: (
            http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
        )(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)
        self._idle: queue.SimpleQueue[http.client.HTTPConnection] = queue.SimpleQueue()
        self._headers = {"accept": "application/json", **headers}
        try:
            self.minor = self._find_newest_minor()
        except BaseException:
            self.close()
            raise
        self._headers["openstack-api-version"] = f"placement 1.{self.minor}"

    def _find_newest_minor(self) -> int:
        versions = self.get("/")
        try:
            newest = newest_minor(versions)
        except ValueError as error:
            raise BadRequest(f"the source is not a Placement API: {error}") from None
        if newest < _OLDEST_MINOR:
            raise BadRequest(f"the source has microversions up to 1.{newest}, and 1.{_OLDEST_MINOR} is needed")
        return min(newest, NEWEST.minor)

    def get(self, path: str) -> Any:
        """Return the JSON body of a response; None: not found."""
        for is_last in (False, True):
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                connection = self._connect()
            try:
                connection.request("GET", self._prefix + path, headers=self._headers)
                answer = connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                # The server may have closed an idle connection.
                if is_last:
                    problem = getattr(error, "strerror", None) or error
                    raise Unavailable(f"the source does not answer: {problem}") from error
                continue
            self._idle.put(connection)
            return _decode(path, answer.status, body)
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connections."""
        while not self._idle.empty():
            self._idle.get().close()

    def providers(self) -> list[dict[str, Any]]:
        """Return the list of all providers."""
        listing = self.get("/resource_providers")["resource_providers"]
        return sorted(listing, key=lambda each: str(each["uuid"]))


def _decode(path: str, status: int, body: bytes) -> Any:
    if status == 404 and path != "/":
        return None
    if status in (401, 403):
        raise BadRequest(f"the source denies access to {path}: status {status}; give --token or --header")
    if status >= 500:
        raise Unavailable(f"the source answers {path} with status {status}")
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    if status != 200 or not isinstance(content, dict):
        raise BadRequest(f"the source is not a Placement API: it answers {path} with status {status}")
    return content


class _SourceChanged(Exception):  # caught in this file
    """The source changed since the providers were listed."""


def _read(
    client: _Client, pool: ThreadPoolExecutor, listing: Sequence[Mapping[str, Any]], progress: Progress
) -> World | None:
    done, total = 0, len(listing)

    def map_with_progress(act: Callable[[T], R], items: Iterable[T]) -> Iterable[R]:
        nonlocal done
        for result in pool.map(act, items):
            yield result
            done += 1
            progress(done, total)

    try:
        results = list(map_with_progress(lambda entry: _read_provider(client, entry), listing))
        uuids = sorted({uuid for _, consumers in results for uuid in consumers})
        total += len(uuids)
        consumers = list(map_with_progress(lambda uuid: _read_consumer(client, uuid), uuids))
    except _SourceChanged:
        return None
    return World(
        providers={provider.uuid: provider for provider, _ in results},
        consumers={consumer.uuid: consumer for consumer in consumers},
        classes=sorted(each["name"] for each in client.get("/resource_classes")["resource_classes"]),
        traits=sorted(client.get("/traits")["traits"]),
    )


def _read_provider(client: _Client, listing: Mapping[str, Any]) -> tuple[Provider, list[str]]:
    """Return a provider, and the uuids of its consumers."""

    def read_part(name: str) -> Any:
        found = client.get(f"/resource_providers/{listing['uuid']}/{name}")
        if found is None or found["resource_provider_generation"] != listing["generation"]:
            raise _SourceChanged
        return found[name]

    inventories = {
        name: offer_of([fields[field] for field in _FIELDS]) for name, fields in read_part("inventories").items()
    }
    parent = listing["parent_provider_uuid"]
    provider = Provider(
        canonical_uuid(listing["uuid"], "provider"),
        listing["name"],
        None if parent is None else canonical_uuid(parent, "provider"),
        listing["generation"],
        inventories,
        sorted(read_part("traits")),
        sorted(canonical_uuid(each, "aggregate") for each in read_part("aggregates")),
    )
    return provider, list(read_part("allocations"))


def _read_consumer(client: _Client, uuid: str) -> Consumer:
    answer = client.get(f"/allocations/{uuid}")
    if not answer or not answer["allocations"]:
        raise _SourceChanged
    kind = answer["consumer_type"] if client.minor >= _TYPES_MINOR else UNKNOWN_TYPE
    amounts = {canonical_uuid(each, "provider"): held["resources"] for each, held in answer["allocations"].items()}
    return Consumer(
        canonical_uuid(uuid, "consumer"),
        answer["project_id"],
        answer["user_id"],
        None if kind == UNKNOWN_TYPE else kind,
        answer["consumer_generation"],
        amounts,
    )
