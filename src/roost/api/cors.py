"""What pages of other origins may ask: the answers that browsers wait for."""

from dataclasses import dataclass

from roost.api.http import Request, Response
from roost.model.settings.placement_settings import Placement as Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Cors:
    """Which origins are let in, and how."""

    origins: frozenset[str]
    common_headers: dict[str, str]  # headers of every answer to such an origin
    preflight_headers: dict[str, str]  # further ones of the answer to what a browser asks beforehand
    methods: frozenset[str]

    @classmethod
    def from_settings(cls, settings: Settings) -> "Cors | None":
        """Return what settings say; None: no origin is let in, and none is spoken of."""
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
        """Return what an answer says to an origin."""
        if origin is None or not ({"*", origin} & self.origins):
            return {}
        # The origin by name even where all are let in: a browser wants that where credentials are sent.
        return {"access-control-allow-origin": origin, "vary": "openstack-api-version, origin", **self.common_headers}

    def preflight(self, request: Request) -> Response | None:
        """Answer what a browser asks before it asks; None: it is no such request.

        Whoever is not let in gets an answer that lets nobody in, as the middleware of OpenStack gives it.
        """
        if request.method != "OPTIONS":
            return None
        method = request.headers.get("access-control-request-method")
        is_let_in = method in self.methods and self.headers(request.headers.get("origin"))
        return Response(headers={**(self.preflight_headers if is_let_in else {}), "content-length": "0"})
