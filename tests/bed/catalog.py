"""Users, services and endpoints in Keystone."""

from tests.bed.cloud_api import CloudApi, Json
from tests.bed.conf_files import PASSWORD, REGION, Places

_USERS = ("nova", "glance", "placement")
_ROLES = ("service", "admin")
_KINDS = {"nova": "compute", "glance": "image", "placement": "placement", "neutron": "network"}


def fill(api: CloudApi, places: Places) -> None:
    """Create the project of the services, their users, and their endpoints."""
    project = _create(api, "project", {"name": "service", "domain_id": "default"})
    roles = {each["name"]: each["id"] for each in api.call("keystone", "GET", "/roles")["roles"]}
    for role in _ROLES:
        roles.setdefault(role, "")
        roles[role] = roles[role] or _create(api, "role", {"name": role})
    for name in _USERS:
        user = _create(api, "user", {"name": name, "password": PASSWORD, "domain_id": "default"})
        for role in _ROLES:
            api.call("keystone", "PUT", f"/projects/{project}/users/{user}/roles/{roles[role]}")
    for name, kind in _KINDS.items():
        service = _create(api, "service", {"name": name, "type": kind})
        for interface in ("public", "internal", "admin"):
            endpoint = {"service_id": service, "interface": interface, "region_id": REGION, "url": places.url(name)}
            _create(api, "endpoint", endpoint)


def _create(api: CloudApi, noun: str, body: Json) -> str:
    return str(api.call("keystone", "POST", f"/{noun}s", {noun: body})[noun]["id"])
