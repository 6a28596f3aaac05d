"""Create providers, inventories and consumers through the Placement API, each with one request."""

from tests.support.fleets.worlds import uuid_named

OWNER = {"project_id": "project", "user_id": "user"}


def provider(api, name="one", parent=None, **totals):
    """Create a provider; ``totals`` are by class, or whole inventories. Return its uuid."""
    uuid = uuid_named(name)
    body = {"name": name, "uuid": uuid} | ({} if parent is None else {"parent_provider_uuid": uuid_named(parent)})
    assert api.post("/resource_providers", body).status == 200
    if totals:
        offer(api, name, **totals)
    return uuid


def offer(api, name, **totals):
    """Replace the inventories of a provider."""
    offer_at(api, uuid_named(name), **totals)


def offer_at(api, uuid, **totals):
    """Replace the inventories of a provider, by uuid."""
    path = f"/resource_providers/{uuid}"
    body = {"resource_provider_generation": api.get(path).json["generation"], "inventories": inventories(**totals)}
    assert api.put(f"{path}/inventories", body).status == 200


def inventories(**totals):
    """Return inventories with these totals; an entry can also be a whole inventory."""
    return {name: total if isinstance(total, dict) else {"total": total} for name, total in totals.items()}


def generation(api, name):
    """Return the generation of a provider."""
    return api.get(f"/resource_providers/{uuid_named(name)}").json["generation"]


def used(api, name):
    """Return the usages of a provider by class."""
    return api.get(f"/resource_providers/{uuid_named(name)}/usages").json["usages"]


def holding(amounts, generation=None, **more):
    """Return a request body with the allocations of a consumer; ``amounts`` are by provider name and class."""
    allocations = {uuid_named(name): {"resources": resources} for name, resources in amounts.items()}
    return {"allocations": allocations, "consumer_generation": generation, "consumer_type": "INSTANCE", **OWNER, **more}


def held(api, consumer, **options):
    """Return the allocations of a consumer."""
    return api.get(f"/allocations/{uuid_named(consumer)}", **options).json


def put(api, consumer, amounts, generation=None, **more):
    """Set the allocations of a consumer; return the reply."""
    return api.put(f"/allocations/{uuid_named(consumer)}", holding(amounts, generation, **more))


def hold(api, consumer, *, project="project", user="user", kind="", **takes):
    """Set the allocations of a new consumer; ``takes`` are by provider uuid and class, ``kind`` its consumer type."""
    allocations = {uuid: {"resources": amounts} for uuid, amounts in takes.items()}
    body = {"allocations": allocations, "consumer_generation": None, "project_id": project, "user_id": user}
    body |= {"consumer_type": kind} if kind else {}
    answer = api.put(f"/allocations/{uuid_named(consumer)}", body, version="1.38" if kind else "1.37")
    assert answer.status == 204, answer.json


def put_many(api, **consumers):
    """Set the allocations of several consumers; each named pair has amounts and a generation."""
    return api.post("/allocations", {uuid_named(name): holding(*wanted) for name, wanted in consumers.items()})
