"""Servers of a cloud, their statuses and their holdings."""

import re
import time
from collections.abc import Callable, Iterable
from typing import Any

from tests.bed.cloud import Cloud
from tests.bed.cloud_api import Json, Refusal
from tests.bed.conf_files import COMPUTES
from tests.bed.records import Amounts, Loads, Outcome, holdings_of

_POLL_S = 0.1
_END_S = 120.0  # of an action
_STABLE = ("ACTIVE", "ERROR", "VERIFY_RESIZE", "SHELVED_OFFLOADED", "SHUTOFF")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Session:
    """The user and operator of a cloud; it knows its servers and flavors by name."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.api = cloud, cloud.api
        self.image = str(self.api.call("glance", "GET", "/v2/images")["images"][0]["id"])
        self.flavors: dict[str, str] = {}  # identifiers by name
        self.servers: dict[str, str] = {}  # uuids by name
        self._provider_names: dict[str, str] = {}  # by uuid

    # Requests to Nova

    def nova(self, method: str, path: str, body: Json = None) -> Json:
        """Send a request to Nova."""
        return self.api.call("nova", method, path, body)

    def placement(self, method: str, path: str, body: Json = None) -> Json:
        """Send a request to Placement."""
        return self.api.call("placement", method, path, body)

    def server(self, name: str) -> Json:
        """Return a server, as Nova shows it."""
        return self.nova("GET", f"/servers/{self.servers[name]}")["server"]

    def create(
        self, name: str, flavor: str = "tiny", *, hints: Json = None, count: int = 1, **fields: Any
    ) -> list[str]:
        """Create one or more servers, and do not wait for them; return their names.

        Args:
            hints: scheduler hints.
            fields: of the request.

        Raises:
            Refusal: Nova refuses the request.
        """
        server = {"name": name, "imageRef": self.image, "flavorRef": self.flavors[flavor], "networks": "none"}
        many = {"min_count": count, "max_count": count, "return_reservation_id": True} if count > 1 else {}
        body: Json = {"server": server | many | fields}
        if hints:
            body["os:scheduler_hints"] = hints
        answer = self.nova("POST", "/servers", body)
        uuids = [answer["server"]["id"]] if count == 1 else self._uuids_of(answer["reservation_id"])
        names = [name] if count == 1 else [f"{name}-{number}" for number in range(count)]
        self.servers |= dict(zip(names, uuids, strict=True))
        return names

    def _uuids_of(self, reservation: str) -> list[str]:
        found = self.nova("GET", f"/servers/detail?reservation_id={reservation}")["servers"]
        return [each["id"] for each in sorted(found, key=lambda each: str(each["name"]))]

    def boot(self, name: str, flavor: str = "tiny", *, is_host_free: bool = True, **more: Any) -> Outcome:
        """Create a server, and wait for it."""
        loads = self.loads()
        try:
            self.create(name, flavor, **more)
        except Refusal as refusal:
            return Outcome(status=self.plain(refusal.message))
        return self.observe(name, is_host_free=is_host_free, loads=loads)

    def act(
        self, name: str, action: str, details: Json = None, *, until: Callable[[Json], bool], **more: Any
    ) -> Outcome:
        """Start an action on a server, and wait until a condition holds and no task is left.

        Args:
            more: as in ``observe``.
        """
        loads = self.loads()
        try:
            self.nova("POST", f"/servers/{self.servers[name]}/action", {action: details})
        except Refusal as refusal:
            return Outcome(status=self.plain(refusal.message))
        end_s = time.monotonic() + _END_S
        while not until(self.server(name)) and time.monotonic() < end_s:
            time.sleep(_POLL_S)
        return self.observe(name, loads=loads, **more)

    def observe(self, name: str, *, is_host_free: bool = True, loads: Loads | None = None) -> Outcome:
        """Wait until a server has no task; return its status, fault, host and holdings."""
        server = self.wait_for(name)
        host = server["OS-EXT-SRV-ATTR:host"] or ""
        # Servers that Nova offloads keep a fault of the past.
        fault = server["fault"]["message"] if "fault" in server and server["status"] == "ERROR" else ""
        return Outcome(
            status=server["status"],
            fault=self.plain(fault),
            host=host,
            is_host_free=is_host_free,
            holdings=holdings_of(self.allocations(self.servers[name]), host),
            loads=loads or {},
        )

    def wait_for(self, name: str) -> Json:
        """Wait until a server has a stable status and no task, within a limit; return it."""
        end_s = time.monotonic() + _END_S
        while True:
            server = self.server(name)
            is_stable = server["status"] in _STABLE and server["OS-EXT-STS:task_state"] is None
            if is_stable or time.monotonic() > end_s:
                return server if is_stable else server | {"status": f"{server['status']} after {_END_S:g} s"}
            time.sleep(_POLL_S)

    # Placement

    def providers(self) -> dict[str, str]:
        """Return the uuids of all providers, by name."""
        found = self.api.providers()
        self._provider_names |= {uuid: name for name, uuid in found.items()}
        return found

    def allocations(self, consumer: str) -> dict[str, Amounts]:
        """Return the amounts of a consumer, by the name of the provider."""
        found = self.placement("GET", f"/allocations/{consumer}")["allocations"]
        if found.keys() - self._provider_names.keys():
            self.providers()
        return {self._provider_names[uuid]: each["resources"] for uuid, each in found.items()}

    def usages(self, *names: str) -> Loads:
        """Return the used amounts by provider; without names, of all providers."""
        uuids = {name: uuid for name, uuid in self.providers().items() if not names or name in names}
        paths = {name: f"/resource_providers/{uuid}/usages" for name, uuid in sorted(uuids.items())}
        return {name: self.placement("GET", path)["usages"] for name, path in paths.items()}

    def loads(self) -> Loads:
        """Return the used amounts of all hosts."""
        return self.usages(*COMPUTES)

    # Texts

    def plain(self, text: str) -> str:
        """Return a text in which no uuid differs between two clouds."""
        names = {uuid: name for name, uuid in (self.servers | self.providers()).items()}
        for uuid, name in names.items():
            text = text.replace(uuid, name)
        return _UUID.sub("UUID", text)

    def manage(self, *words: str) -> Json:
        """Run nova-manage; return its exit code and the end of its output."""
        result = self.cloud.nova_manage(*words, is_checked=False)
        lines = [line for line in result.stdout.splitlines() if line.strip() and " WARNING " not in line]
        return {"exit code": result.returncode, "output": [self.plain(line).rstrip() for line in lines[-6:]]}


def statuses(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Return the number of servers with each status."""
    counts: dict[str, int] = {}
    for outcome in outcomes:
        counts[outcome.status] = counts.get(outcome.status, 0) + 1
    return dict(sorted(counts.items()))
