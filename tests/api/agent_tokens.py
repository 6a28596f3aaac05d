"""Both APIs over two hosts, with tokens that are limited to one host."""

from contextlib import contextmanager

from roost.api.access.authentication import Tokens, new_token, trust_headers
from roost.api.access.policy import Policy
from roost.api.answer_options import DEFAULTS
from roost.api.placement.application import Application
from roost.model.names import SHARING_TRAIT
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import ApiClient, roost_api

AGENT, OTHER, FREE = "own host", "other host", "no host"
OWN_ROOT, OTHER_ROOT = uuid_of("host", "0"), uuid_of("host", "1")
SHARED = uuid_of("shared")
NEW = uuid_of("new")
TYPED = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}


class HostTokenApis:
    """Both APIs over host-0 and host-1, with a token for each host's agent and one for an agent without hosts."""

    def __init__(self, own, tokens, placement):
        self.own, self.placement = own, placement
        self._tokens = tokens

    def ask(self, token, method, url, body=None, *, version="1.39"):
        """Send a request to the Placement API with one of the tokens."""
        return self.placement.ask(method, url, body, version=version, headers={"x-auth-token": self._tokens[token]})

    def ask_v1(self, token, method, url, body=None):
        """Send a request to the /v1 API with one of the tokens."""
        return self.own.ask(method, url, body, headers={"x-auth-token": self._tokens[token]})

    def admin(self, method, url, body=None):
        """Send a request to the Placement API as an administrator; it must succeed."""
        answer = self.placement.ask(method, url, body)
        assert answer.status < 300, (method, url, answer.json)
        return answer.json


@contextmanager
def open_apis(host_count=2, options=DEFAULTS):
    new_tokens = {
        token: new_token(token, roles=roles, hosts=hosts)
        for token, roles, hosts in ((AGENT, (), ("Host-0",)), (OTHER, (), ("host-1",)), (FREE, ("agent",), ()))
    }
    tokens = Tokens([stored for _, stored in new_tokens.values()])

    def identify(headers):
        return tokens.identify(headers) or (trust_headers(headers) if headers["x-auth-token"] == "admin" else None)

    with roost_api(fleet(host_count, vcpus=8), identify=identify) as own:
        application = Application(identify=identify, allows=Policy(is_legacy=True).allows, options=options)
        placement = ApiClient(application, own.serving)
        apis = HostTokenApis(own, {token: text for token, (text, _) in new_tokens.items()}, placement)
        for name, uuid in (("in-0", "a"), ("in-1", "b")):
            root = OWN_ROOT if name == "in-0" else OTHER_ROOT
            apis.admin("POST", "/resource_providers", child(name, uuid_of(uuid), root))
        for uuid in ("a", "b"):
            apis.admin("PUT", f"/resource_providers/{uuid_of(uuid)}/inventories", inventories_body(VGPU=4))
        apis.admin("POST", "/resource_providers", {"name": "shared", "uuid": SHARED})
        apis.admin("PUT", f"/resource_providers/{SHARED}/inventories", inventories_body(DISK_GB=100))
        apis.admin(
            "PUT",
            f"/resource_providers/{SHARED}/traits",
            {"traits": [SHARING_TRAIT], "resource_provider_generation": generation(apis, SHARED)},
        )
        for consumer, root in (("here", OWN_ROOT), ("there", OTHER_ROOT)):
            allocate(apis, consumer, {root: {"VCPU": 1}})
        apis.admin("PUT", "/traits/CUSTOM_OLD")
        apis.admin("PUT", "/resource_classes/CUSTOM_OLD")
        yield apis


def child(name, uuid, parent):
    return {"name": name, "uuid": uuid, "parent_provider_uuid": parent}


def inventories_body(*, generation=0, **totals):
    return {
        "inventories": {name: {"total": total} for name, total in totals.items()},
        "resource_provider_generation": generation,
    }


def generation(apis, uuid):
    return apis.admin("GET", f"/resource_providers/{uuid}")["generation"]


def allocation_body(apis, consumer, amounts):
    """Return a request body that replaces a consumer's allocations with these amounts."""
    held = apis.admin("GET", f"/allocations/{uuid_of(consumer)}")
    allocations = {uuid: {"resources": resources} for uuid, resources in amounts.items()}
    return {"allocations": allocations, "consumer_generation": held.get("consumer_generation"), **TYPED}


def allocate(apis, consumer, amounts):
    apis.admin("PUT", f"/allocations/{uuid_of(consumer)}", allocation_body(apis, consumer, amounts))
