"""The authenticators that the settings select."""

from pathlib import Path

from roost.api.access.authentication import trust_headers
from roost.api.access.token_file import TokenFile
from roost.api.asgi import Authenticate
from roost.api.http import Identify
from roost.errors import BadSettings
from roost.model.settings.placement_settings import Placement as Settings


def build_authenticators(settings: Settings) -> tuple[Identify, Authenticate | None]:
    """Return the synchronous authenticator and the asynchronous one.

    With Keystone, the synchronous one accepts no client. Without Keystone, the asynchronous one is None.

    Raises:
        BadSettings: a required file is not set, or is invalid.
    """
    if settings.auth_strategy == "noauth2":
        return trust_headers, None
    if settings.auth_strategy == "tokens":
        if not settings.tokens_file:
            raise BadSettings("placement.tokens_file", 'must be set for auth_strategy "tokens"')
        return TokenFile(Path(settings.tokens_file)).identify, None
    if not settings.keystone_file:
        text = 'must be set for auth_strategy "keystone", to a file with a section keystone_authtoken'
        raise BadSettings("placement.keystone_file", text)
    from roost.api.access.keystone_auth import Keystone

    return (lambda _headers: None), Keystone(Path(settings.keystone_file))
