"""Both APIs over two hosts, and tokens that are bound to them."""

from contextlib import contextmanager

from roost.api.access.authentication import Tokens, new_token, trust_headers
from roost.api.access.policy import Policy
from roost.api.answer_options import DEFAULTS
from roost.api.placement.application import Application
from roost.model.names import SHARING_TRAIT
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import Asking, asking_own

AGENT, OTHER, FREE = "own host", "other host", "no host"
OWN_ROOT, OTHER_ROOT = uuid_of("host", "0"), uuid_of("host", "1")
SHARED = uuid_of("shared")
NEW = uuid_of("new")
TYPED = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}


class Bound:
    """Both APIs over two hosts, host-0 and host-1, and tokens of an agent of host-0, of host-1, and of none."""

    def __init__(self, own, tokens, placement):
        self.own, self.placement = own, placement
        self._tokens = tokens

    def ask(self, who, method, url, body=None, *, version="1.39"):
        """Ask the Placement API with one of the tokens."""
        return self.placement.ask(method, url, body, version=version, headers={"x-auth-token": self._tokens[who]})

    def ask_own(self, who, method, url, body=None):
        """Ask Roost's own API with one of them."""
        return self.own.ask(method, url, body, headers={"x-auth-token": self._tokens[who]})

    def admin(self, method, url, body=None):
        """Ask the Placement API as an administrator, who may do it."""
        answer = self.placement.ask(method, url, body)
        assert answer.status < 300, (method, url, answer.json)
        return answer.json


@contextmanager
def bound(fleet_of=2, options=DEFAULTS):
    made = {
        who: new_token(who, roles=roles, hosts=hosts)
        for who, roles, hosts in ((AGENT, (), ("Host-0",)), (OTHER, (), ("host-1",)), (FREE, ("agent",), ()))
    }
    known = Tokens([kept for _, kept in made.values()])

    def identify(headers):
        return known.identify(headers) or (trust_headers(headers) if headers["x-auth-token"] == "admin" else None)

    with asking_own(fleet(fleet_of, vcpus=8), identify=identify) as own:
        application = Application(identify=identify, allows=Policy(is_legacy=True).allows, options=options)
        placement = Asking(application, own.serving)
        found = Bound(own, {who: text for who, (text, _) in made.items()}, placement)
        for name, uuid in (("in-0", "a"), ("in-1", "b")):
            root = OWN_ROOT if name == "in-0" else OTHER_ROOT
            found.admin("POST", "/resource_providers", child(name, uuid_of(uuid), root))
        for uuid in ("a", "b"):
            found.admin("PUT", f"/resource_providers/{uuid_of(uuid)}/inventories", offered(VGPU=4))
        found.admin("POST", "/resource_providers", {"name": "shared", "uuid": SHARED})
        found.admin("PUT", f"/resource_providers/{SHARED}/inventories", offered(DISK_GB=100))
        found.admin(
            "PUT",
            f"/resource_providers/{SHARED}/traits",
            {"traits": [SHARING_TRAIT], "resource_provider_generation": generation(found, SHARED)},
        )
        for consumer, root in (("here", OWN_ROOT), ("there", OTHER_ROOT)):
            hold(found, consumer, {root: {"VCPU": 1}})
        found.admin("PUT", "/traits/CUSTOM_OLD")
        found.admin("PUT", "/resource_classes/CUSTOM_OLD")
        yield found


def child(name, uuid, parent):
    return {"name": name, "uuid": uuid, "parent_provider_uuid": parent}


def offered(*, generation=0, **totals):
    return {
        "inventories": {name: {"total": total} for name, total in totals.items()},
        "resource_provider_generation": generation,
    }


def generation(apis, uuid):
    return apis.admin("GET", f"/resource_providers/{uuid}")["generation"]


def holding(apis, consumer, amounts):
    """Give what lets a consumer hold amounts instead of what it holds."""
    found = apis.admin("GET", f"/allocations/{uuid_of(consumer)}")
    allocations = {uuid: {"resources": resources} for uuid, resources in amounts.items()}
    return {"allocations": allocations, "consumer_generation": found.get("consumer_generation"), **TYPED}


def hold(apis, consumer, amounts):
    apis.admin("PUT", f"/allocations/{uuid_of(consumer)}", holding(apis, consumer, amounts))
