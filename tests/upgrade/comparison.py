"""The columns of a server, as its answers."""

from typing import Any

from tests.support.servers.servers import ADMIN, RunningServer

_PARTS = ("inventories", "usages", "traits", "aggregates", "allocations")


def columns_of(server: RunningServer) -> dict[str, Any]:
    """Return the content of the columns of a server; the traits and aggregates of a provider have no order."""

    def get(path: str) -> Any:
        status, _, body = server.ask("GET", path, headers=ADMIN)
        assert status == 200, (path, status, body)
        return body

    found: dict[str, Any] = {}
    for provider in get("/placement/resource_providers")["resource_providers"]:
        found[provider["name"]] = {"generation": provider["generation"], "uuid": provider["uuid"]}
        for part in _PARTS:
            body = get(f"/placement/resource_providers/{provider['uuid']}/{part}")
            found[provider["name"]][part] = {
                name: sorted(value) if isinstance(value, list) else value for name, value in body.items()
            }
    found["traits"] = sorted(get("/placement/traits")["traits"])
    found["groups"] = sorted((each["uuid"], each["name"]) for each in get("/v1/groups")["groups"])
    return found
