"""The configuration files of all services of the cloud, as text."""

import uuid
from collections.abc import Mapping
from pathlib import Path

import msgspec

PASSWORD = "bed"
REGION = "RegionOne"
# One compute service each; the scenario knows these names.
COMPUTES = ("cmp1", "cmp2", "cmp3")
SERVICES = ("keystone", "glance", "placement", "nova", "neutron", "roost", "roost-2")
DATABASES = ("keystone", "glance", "placement", "nova_api", "nova", "nova_cell0")
FILTERS = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
    "NUMATopologyFilter",
    "AggregateInstanceExtraSpecsFilter",
)
REPORT_INTERVAL_S = 5
SERVICE_DOWN_S = 30
# Hosts with this trait and class beside those of their driver.
GOLD, GADGET = "CUSTOM_GOLD", "CUSTOM_GADGET"
GADGETS = 4  # on each of these hosts
GOLD_HOSTS = ("cmp2", "cmp3")
_DRIVERS = {
    "cmp1": "fake.MediumFakeDriverWithNestedCustomResources",
    "cmp2": "fake.MediumFakeDriverWithNestedCustomResources",
    "cmp3": "fake.MediumFakeDriver",
}

Sections = Mapping[str, Mapping[str, object]]


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where the parts of the cloud are."""

    folder_path: str
    ports: dict[str, int]  # by service
    placement_path: str  # of the Placement API in its server
    broker_url: str
    socket: str  # of MariaDB

    @property
    def folder(self) -> Path:
        """The folder of all files."""
        return Path(self.folder_path)

    def url(self, service: str) -> str:
        """Return the endpoint of a service."""
        path = {"keystone": "/v3", "nova": "/v2.1", "placement": self.placement_path}.get(service, "")
        return f"http://127.0.0.1:{self.ports[service]}{path}"

    def database(self, name: str) -> str:
        """Return the URL of a database."""
        return f"mysql+pymysql://root@localhost/{name}?unix_socket={self.socket}&charset=utf8"


def render(sections: Sections) -> str:
    """Return sections as text."""
    blocks = [
        "\n".join([f"[{section}]", *(f"{name} = {value}" for name, value in options.items())])
        for section, options in sections.items()
    ]
    return "\n\n".join(blocks) + "\n"


def _login(places: Places, user: str) -> dict[str, object]:
    return {
        "auth_type": "password",
        "auth_url": places.url("keystone"),
        "username": user,
        "password": PASSWORD,
        "project_name": "service",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }


def _token_checks(places: Places, user: str) -> dict[str, object]:
    return _login(places, user) | {
        "www_authenticate_uri": places.url("keystone"),
        "service_token_roles": "service",
        "service_token_roles_required": "true",
    }


def keystone(places: Places) -> Sections:
    """Return keystone.conf."""
    keys = f"{places.folder}/fernet"
    return {
        "DEFAULT": {"use_stderr": "true"},
        "database": {"connection": places.database("keystone")},
        "token": {"provider": "fernet"},
        "fernet_tokens": {"key_repository": keys},
        "fernet_receipts": {"key_repository": keys},
        "credential": {"key_repository": f"{places.folder}/credential"},
        "cache": {"enabled": "true", "backend": "dogpile.cache.memory"},
    }


def glance(places: Places) -> Sections:
    """Return glance-api.conf."""
    return {
        "DEFAULT": {
            "use_stderr": "true",
            "enabled_backends": "files:file",
            "node_staging_uri": f"file://{places.folder}/staging",
        },
        "database": {"connection": places.database("glance")},
        "glance_store": {"default_backend": "files"},
        "files": {"filesystem_store_datadir": f"{places.folder}/images"},
        "os_glance_staging_store": {"filesystem_store_datadir": f"{places.folder}/staging"},
        "os_glance_tasks_store": {"filesystem_store_datadir": f"{places.folder}/tasks"},
        "paste_deploy": {"flavor": "keystone"},
        "keystone_authtoken": _token_checks(places, "glance"),
    }


def placement(places: Places) -> Sections:
    """Return placement.conf, for both Placements."""
    return {
        "DEFAULT": {"use_stderr": "true"},
        "api": {"auth_strategy": "keystone"},
        "placement_database": {"connection": places.database("placement")},
        "keystone_authtoken": _token_checks(places, "placement"),
    }


def nova(places: Places) -> Sections:
    """Return nova.conf, for all services of Nova and for Roost."""
    login = _login(places, "nova") | {"region_name": REGION}
    unlimited = ("instances", "cores", "ram", "server_groups", "server_group_members")
    return {
        "DEFAULT": {
            "use_stderr": "true",
            "my_ip": "127.0.0.1",
            "state_path": f"{places.folder}/nova",
            "transport_url": places.broker_url,
            "reserved_host_memory_mb": 512,
            "sync_power_state_interval": -1,
            "report_interval": REPORT_INTERVAL_S,
            "service_down_time": SERVICE_DOWN_S,
            "shelved_offload_time": 0,
        },
        "api": {"auth_strategy": "keystone"},
        "api_database": {"connection": places.database("nova_api")},
        "database": {"connection": places.database("nova"), "max_pool_size": 20},
        "oslo_concurrency": {"lock_path": f"{places.folder}/locks"},
        "oslo_messaging_notifications": {"driver": "noop"},
        "quota": dict.fromkeys(unlimited, -1) | {"count_usage_from_placement": "true"},
        "conductor": {"workers": 1},
        "scheduler": {
            "workers": 1,
            "max_attempts": 3,
            "query_placement_for_image_type_support": "true",
            "enable_isolated_aggregate_filtering": "true",
        },
        "filter_scheduler": {"enabled_filters": ",".join(FILTERS)},
        "compute": {"resource_provider_association_refresh": 60},
        "service_user": login | {"send_service_user_token": "true"},
        "keystone_authtoken": _token_checks(places, "nova"),
        "placement": login,
        "neutron": login,
        "glance": login,
        "cinder": {"catalog_info": "volumev3::publicURL"},
    }


def compute(places: Places, host: str) -> Sections:
    """Return the second file of one compute service."""
    folder = f"{places.folder}/nova/{host}"
    return {
        "DEFAULT": {"host": host, "state_path": folder, "compute_driver": _DRIVERS[host]},
        "compute": {"provider_config_location": f"{folder}/providers"},
    }


def node_uuid(host: str) -> str:
    """Return the uuid of a compute node, as ``programs/site`` gives it."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, host))


PROVIDERS = f"""\
meta:
  schema_version: "1.0"
providers:
- identification:
    uuid: $COMPUTE_NODE
  inventories:
    additional:
    - {GADGET}:
        total: {GADGETS}
        reserved: 0
        min_unit: 1
        max_unit: {GADGETS}
        step_size: 1
        allocation_ratio: 1.0
  traits:
    additional:
    - {GOLD}
"""


def write(places: Places, paste: Path) -> None:
    """Write all files of the services.

    Args:
        paste: the folder ``etc`` of the environment, with the pipelines of nova and glance.
    """
    etc = places.folder / "etc"
    pipelines = {"nova": "nova/api-paste.ini", "glance": "glance/glance-api-paste.ini"}
    files = {
        "keystone": ("keystone.conf", keystone),
        "glance": ("glance-api.conf", glance),
        "placement": ("placement.conf", placement),
        "nova": ("nova.conf", nova),
    }
    for service, (name, sections) in files.items():
        (etc / service).mkdir(parents=True)
        (etc / service / name).write_text(render(sections(places)))
        if service in pipelines:
            path = paste / pipelines[service]
            (etc / service / path.name).write_bytes(path.read_bytes())
    for name in ("locks", "images", "staging", "tasks"):
        (places.folder / name).mkdir()
    for host in COMPUTES:
        (etc / "nova" / f"{host}.conf").write_text(render(compute(places, host)))
        folder = places.folder / "nova" / host
        (folder / "providers").mkdir(parents=True)
        # A compute service that starts again compares this file; the fake driver never writes it.
        (folder / "compute_id").write_text(f"{node_uuid(host)}\n")
        if host in GOLD_HOSTS:
            (folder / "providers" / "gold.yaml").write_text(PROVIDERS)
