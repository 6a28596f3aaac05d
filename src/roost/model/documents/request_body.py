"""A request as a document of the API."""

from typing import Any

import msgspec

from roost.model.request import Request


def request_body(request: Request) -> dict[str, Any]:
    """Return a request as a document of the API, which names some fields differently."""
    body: dict[str, Any] = msgspec.to_builtins(request)
    body["resource_groups"] = body.pop("groups")
    if body["retry"] is not None:
        body["retry"] = {"num_attempts": body["retry"]["attempts"], "hosts": body["retry"]["hosts"]}
    for network in body["networks"]:
        network["remote_managed"], network["tunneled"] = network.pop("is_remote_managed"), network.pop("is_tunneled")
    if body["move"] is not None:
        del body["move"]["may_return"]
    return body
