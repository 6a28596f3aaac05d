"""What tests of the Placement API need to be there: providers, inventories and consumers, in a line each."""

from roost.model.journal import CLASS_BITS, Claim, ConsumerRow, InventoryRow, PutInventories, PutSymbol
from roost.model.names import AMOUNT_MAX, uuid_bytes
from roost.placement.plans import Plan
from tests.worlds import uuid_named


def provider(api, name="one"):
    """Create a provider; return its uuid."""
    uuid = uuid_named(name)
    assert api.post("/resource_providers", {"name": name, "uuid": uuid}).status == 200
    return uuid


def write(api, plan):
    """Commit what a function of the columns plans."""
    api.serving.run(lambda current: Plan(writes=tuple(plan(current)), answer=True))


def offer(api, uuid, **totals):
    """Let a provider offer amounts by resource class, and nothing else."""

    def plan(current):
        providers = current.state.providers
        row = providers.row_of_uuid[uuid]
        rows = [
            InventoryRow(current.state.class_ids.id_of(name), total, 0, 1, AMOUNT_MAX, 1, 1.0)
            for name, total in totals.items()
        ]
        yield PutInventories(providers.ids[row], providers.generation.each[row], rows)

    write(api, plan)


def hold(api, name, *, project="project", user="user", kind="", **takes):
    """Let a consumer hold amounts: by provider uuid, by resource class."""

    def plan(current):
        state, number, type_id = current.state, current.new_id("consumer"), 0
        if kind:
            type_id = state.consumer_types.id_of(kind)
            if type_id is None:
                type_id = current.new_symbol("consumer_type")
                yield PutSymbol("consumer_type", type_id, kind)
        amounts = [
            (number, provider_id << CLASS_BITS | state.class_ids.id_of(name), amount)
            for uuid, held in takes.items()
            for provider_id in [state.providers.ids[state.providers.row_of_uuid[uuid]]]
            for name, amount in held.items()
        ]
        consumer = ConsumerRow(number, uuid_bytes(uuid_named(name)), project, user, type_id)
        yield Claim([consumer], amounts)

    write(api, plan)
