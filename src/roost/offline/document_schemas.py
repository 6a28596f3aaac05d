"""The JSON Schemas of the documents, generated from their structs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from roost.model.documents.answer import Answer
from roost.model.documents.fleet_document import FleetDocument
from roost.model.documents.request_document import RequestDocument

DOCUMENTS: Mapping[str, type] = MappingProxyType({"fleet": FleetDocument, "request": RequestDocument, "answer": Answer})
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(document: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of ``fleet``, ``request`` or ``answer``."""
    return {"$schema": _DIALECT, **msgspec.json.schema(DOCUMENTS[document])}
