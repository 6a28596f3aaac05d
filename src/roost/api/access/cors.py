"""Cross-origin requests of browsers: preflights and headers."""

from dataclasses import dataclass

from roost.api.http import Request, Response
from roost.model.settings.placement_settings import Placement as Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Cors:
    """Allowed origins, and the headers for them."""

    origins: frozenset[str]
    common_headers: dict[str, str]  # of every response to an allowed origin
    preflight_headers: dict[str, str]  # further headers of the response to a preflight
    methods: frozenset[str]

    @classmethod
    def from_settings(cls, settings: Settings) -> "Cors | None":
        """Return the CORS rules of the settings; None: no origin is allowed, and no header is sent."""
        if not settings.cors_allowed_origin:
            return None
        always = {"access-control-expose-headers": ",".join(settings.cors_expose_headers)}
        if settings.cors_allow_credentials:
            always["access-control-allow-credentials"] = "true"
        return cls(
            origins=frozenset(settings.cors_allowed_origin),
            common_headers=always,
            preflight_headers={
                "access-control-allow-methods": ",".join(settings.cors_allow_methods),
                "access-control-allow-headers": ",".join(settings.cors_allow_headers),
                "access-control-max-age": str(settings.cors_max_age),
            },
            methods=frozenset(settings.cors_allow_methods),
        )

    def headers(self, origin: str | None) -> dict[str, str]:
        """Return the headers for an origin."""
        if origin is None or not ({"*", origin} & self.origins):
            return {}
        # Name the origin even if "*" is allowed: with credentials, browsers reject "*" in this header.
        return {"access-control-allow-origin": origin, "vary": "openstack-api-version, origin", **self.common_headers}

    def preflight(self, request: Request) -> Response | None:
        """Answer a preflight request; return None for any other request.

        The answer to a forbidden origin has no CORS headers, as in the OpenStack middleware.
        """
        if request.method != "OPTIONS":
            return None
        method = request.headers.get("access-control-request-method")
        is_allowed = method in self.methods and self.headers(request.headers.get("origin"))
        return Response(headers={**(self.preflight_headers if is_allowed else {}), "content-length": "0"})
