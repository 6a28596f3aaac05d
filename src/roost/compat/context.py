"""Counterpart of ``nova.context``: the caller of a request. Plug-ins may read everything."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """The caller of a request."""

    user_id: str | None = None
    project_id: str | None = None
    is_admin: bool = True
    request_id: str | None = None
    roles: list[str] = field(default_factory=list)

    def elevated(self, read_deleted: str | None = None) -> "RequestContext":  # Nova's signature.
        """Return the context with administrator rights."""
        return RequestContext(
            user_id=self.user_id, project_id=self.project_id, request_id=self.request_id, roles=self.roles
        )


def get_admin_context(read_deleted: str = "no") -> RequestContext:  # noqa: ARG001  # Nova's signature.
    """Return the context of an administrator."""
    return RequestContext()


get_context = get_admin_context


@contextlib.contextmanager
def target_cell(context: Any, _cell_mapping: Any) -> Iterator[Any]:
    """Provide the context of a cell: the same, because cells share one database."""
    yield context
