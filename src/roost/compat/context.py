"""What Nova has in ``nova.context``: on whose behalf something is done. Plug-ins may look at everything."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """On whose behalf something is done."""

    user_id: str | None = None
    project_id: str | None = None
    is_admin: bool = True
    request_id: str | None = None
    roles: list[str] = field(default_factory=list)

    def elevated(self, read_deleted: str | None = None) -> "RequestContext":  # Nova's.
        """Return the same as an administrator."""
        return RequestContext(
            user_id=self.user_id, project_id=self.project_id, request_id=self.request_id, roles=self.roles
        )


def get_admin_context(read_deleted: str = "no") -> RequestContext:  # noqa: ARG001  # Nova's.
    """Return the context of an administrator."""
    return RequestContext()


get_context = get_admin_context


@contextlib.contextmanager
def target_cell(context: Any, _cell_mapping: Any) -> Iterator[Any]:
    """Give the context of one cell: cells share one database here."""
    yield context
