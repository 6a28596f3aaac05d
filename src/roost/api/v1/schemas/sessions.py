"""Sessions of browsers, and the permissions of a client."""

from typing import Annotated

import msgspec
from msgspec import Meta


class ShownSession(msgspec.Struct, frozen=True, kw_only=True):
    """A client and its permissions."""

    user_id: Annotated[str, Meta(description="User of the token.")]
    project_id: Annotated[str, Meta(description="Project of the token; empty: none.")]
    roles: Annotated[list[str], Meta(description="Roles of the token, in lower case.")]
    is_system_scoped: Annotated[bool, Meta(description="Whether the token is for the whole system.")]
    policies: Annotated[list[str], Meta(description="Policies of this API that allow the client's requests.")]
    expires_at_s: Annotated[
        float | None,
        Meta(description="End of the browser session, in seconds since the epoch; null: the client sent a token."),
    ]
    is_plain_http: Annotated[
        bool, Meta(description="Whether the browser sends token, cookie and key unencrypted to another machine.")
    ]


class NewSession(ShownSession, frozen=True, kw_only=True):
    """A new session of a browser."""

    key: Annotated[str, Meta(description="Key for the header x-roost-session-key; the server does not store it.")]
