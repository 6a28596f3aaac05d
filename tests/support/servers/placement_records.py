"""What tests of the Placement API need to be there: providers, inventories and consumers, each by one request."""

from tests.support.fleets.worlds import uuid_named

OWNER = {"project_id": "project", "user_id": "user"}


def provider(api, name="one", parent=None, **totals):
    """Create a provider that offers so much of each class, or inventories as they are given; return its uuid."""
    uuid = uuid_named(name)
    body = {"name": name, "uuid": uuid} | ({} if parent is None else {"parent_provider_uuid": uuid_named(parent)})
    assert api.post("/resource_providers", body).status == 200
    if totals:
        offer(api, name, **totals)
    return uuid


def offer(api, name, **totals):
    """Let a provider offer this and nothing else."""
    offer_at(api, uuid_named(name), **totals)


def offer_at(api, uuid, **totals):
    """Do the same, by uuid."""
    path = f"/resource_providers/{uuid}"
    body = {"resource_provider_generation": api.get(path).json["generation"], "inventories": inventories(**totals)}
    assert api.put(f"{path}/inventories", body).status == 200


def inventories(**totals):
    """Return inventories of these totals, or as they are given."""
    return {name: total if isinstance(total, dict) else {"total": total} for name, total in totals.items()}


def generation(api, name):
    """Ask for the generation of a provider."""
    return api.get(f"/resource_providers/{uuid_named(name)}").json["generation"]


def used(api, name):
    """Ask how much of each class of a provider is in use."""
    return api.get(f"/resource_providers/{uuid_named(name)}/usages").json["usages"]


def holding(amounts, generation=None, **more):
    """Return the body of one consumer that holds amounts, by the name of the provider and the class."""
    allocations = {uuid_named(name): {"resources": resources} for name, resources in amounts.items()}
    return {"allocations": allocations, "consumer_generation": generation, "consumer_type": "INSTANCE", **OWNER, **more}


def held(api, consumer, **options):
    """Ask what a consumer holds."""
    return api.get(f"/allocations/{uuid_named(consumer)}", **options).json


def put(api, consumer, amounts, generation=None, **more):
    """Let a consumer hold amounts; return the answer."""
    return api.put(f"/allocations/{uuid_named(consumer)}", holding(amounts, generation, **more))


def hold(api, consumer, *, project="project", user="user", kind="", **takes):
    """Let a new consumer hold amounts, by the uuid of the provider and the class; without a kind it is unknown."""
    allocations = {uuid: {"resources": amounts} for uuid, amounts in takes.items()}
    body = {"allocations": allocations, "consumer_generation": None, "project_id": project, "user_id": user}
    body |= {"consumer_type": kind} if kind else {}
    answer = api.put(f"/allocations/{uuid_named(consumer)}", body, version="1.38" if kind else "1.37")
    assert answer.status == 204, answer.json


def put_many(api, **consumers):
    """Let consumers, by name, hold what each one's pair of amounts and generation says."""
    return api.post("/allocations", {uuid_named(name): holding(*wanted) for name, wanted in consumers.items()})
