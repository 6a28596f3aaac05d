"""The OpenAPI document, generated from routes and their structs."""

import inspect
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from roost import __version__
from roost.api.access.session_cookie import KEY_HEADER, TOKEN_HEADER
from roost.api.problems import title_of
from roost.api.v1.call import JSON
from roost.api.v1.documents.tags import TAGS, tag_of
from roost.api.v1.policies import DEFAULTS
from roost.api.v1.route import Route
from roost.api.v1.routes import TABLE
from roost.api.v1.wire.problem_details import CONTENT_TYPE, ProblemDetails

PATH = "/openapi.json"
_ABOUT = (
    "Placement and scheduling: where every workload runs, and why. Responses to GET have an etag for If-None-Match. "
    "Long bodies are compressed for clients that accept gzip."
)
_SCHEMES = {
    "token": {"type": "apiKey", "in": "header", "name": TOKEN_HEADER},
    "session": {
        "type": "apiKey",
        "in": "header",
        "name": KEY_HEADER,
        "description": "Key of a browser session from POST /session, together with the cookie of that response.",
    },
}
_EXAMPLES_FILE = "openapi_examples.json"
_REFERENCE = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"{(\w+)}")


@cache
def body() -> bytes:
    """Return the document as JSON."""
    return msgspec.json.encode(document())


def document() -> dict[str, Any]:
    """Build the document."""
    routes = [route for methods in TABLE.values() for route in methods.values()]
    kinds = dict.fromkeys(
        kind for route in routes for kind in (route.body, route.answer, route.later, route.query) if kind
    )
    schemas, components = msgspec.json.schema_components([*kinds, ProblemDetails], ref_template=_REFERENCE)
    by_kind = dict(zip([*kinds, ProblemDetails], schemas, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Roost",
            "version": __version__,
            "description": _ABOUT,
        },
        "servers": [{"url": "/v1"}],
        "security": [{"token": []}, {"session": []}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": {
            path: {
                method.lower(): _with_examples(
                    _operation(path, route, schemas=by_kind, components=components),
                    route,
                    _examples().get(f"{method} {path}", {}),
                )
                for method, route in methods.items()
            }
            for path, methods in TABLE.items()
        },
        "components": {
            "schemas": components,
            "securitySchemes": _SCHEMES,
        },
    }


def _operation(path: str, route: Route, *, schemas: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "tags": [tag_of(path)],
        "operationId": f"{route.handler.__module__.rpartition('.')[2]}_{route.handler.__name__}",
        "summary": route.about,
        "description": _describe(route),
        "parameters": [*_of_path(path), *_of_query(route, components), *_of_headers(route)],
        "responses": {
            str(route.status): _answer(title_of(route.status), route.media_type, schemas.get(route.answer)),
            **_of_later(route, schemas),
            "default": _answer("Error", CONTENT_TYPE, schemas[ProblemDetails]),
        },
    }
    if route.is_open:
        operation["security"] = []
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": schemas[route.body]}}}
    return operation


@cache
def _examples() -> Mapping[str, Mapping[str, Any]]:
    """Return the bodies of an exchange by operation, such as ``POST /decisions``; `make golden` writes the file."""
    text = resources.files(__package__).joinpath(_EXAMPLES_FILE).read_bytes()
    examples: Mapping[str, Mapping[str, Any]] = msgspec.json.decode(text)
    return examples


def _with_examples(operation: dict[str, Any], route: Route, example: Mapping[str, Any]) -> dict[str, Any]:
    """Return an operation with an example of its request and of its response, where they have bodies."""
    if "request" in example:
        operation["requestBody"]["content"][JSON]["example"] = example["request"]
    if "response" in example:
        operation["responses"][str(route.status)]["content"][route.media_type]["example"] = example["response"]
    return operation


def _describe(route: Route) -> str:
    """Return the details of an operation, from the docstring of its handler, and its policy."""
    _, _, details = (inspect.getdoc(route.handler) or "").partition("\n\n")
    if route.is_open:
        return details
    policy = f"Policy {route.policy}, by default {DEFAULTS[route.policy]}."
    return f"{details}\n\n{policy}" if details else policy


def _of_later(route: Route, schemas: dict[Any, Any]) -> dict[str, Any]:
    return {} if route.later is None else {"202": _answer(title_of(202), JSON, schemas[route.later])}


def _answer(text: str, media_type: str, schema: Any) -> dict[str, Any]:
    if schema is None and media_type != JSON:
        schema = {"type": "string"} if media_type.startswith("text/") else {"type": "string", "format": "binary"}
    return {"description": text} | ({} if schema is None else {"content": {media_type: {"schema": schema}}})


def _of_path(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(path)
    ]


def _of_query(route: Route, components: dict[str, Any]) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    schema = components[route.query.__name__]
    return [
        {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": each}
        for name, each in schema["properties"].items()
    ]


def _of_headers(route: Route) -> list[dict[str, Any]]:
    text = "A repeated request with the same key and body gets the same response, without a second effect."
    schema = {"type": "string", "minLength": 1, "maxLength": 255}
    parameter = {"name": "Idempotency-Key", "in": "header", "required": False, "description": text, "schema": schema}
    return [parameter] if route.is_keyed else []
