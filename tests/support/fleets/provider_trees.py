"""Provider trees: ``host`` with the cells ``cell0`` and ``cell1``, a device in ``cell0``, and ``pool``."""

from roost.compute.providers.provider_tree import ProviderTree
from tests.support.fleets.worlds import uuid_named

VCPU = {"total": 8, "reserved": 0, "max_unit": 8}
NAMES = ["host", "cell0", "device", "cell1", "pool"]


def uuids(*names):
    """Return the uuids for names."""
    return [uuid_named(name) for name in names]


def record(name, parent=None, generation=0):
    """Return a provider record of Placement's list."""
    return {
        "uuid": uuid_named(name),
        "name": name,
        "generation": generation,
        "parent_provider_uuid": parent and uuid_named(parent),
    }


def provider_tree():
    """Return the tree; each provider has inventory, traits, aggregates and resources."""
    tree = ProviderTree()
    tree.populate_from_iterable(
        [record("device", "cell0"), record("host"), record("cell0", "host"), record("cell1", "host"), record("pool")]
    )
    for name in NAMES:
        tree.update_inventory(name, {"VCPU": VCPU}, 1)
        tree.update_traits(name, {"CUSTOM_A", "CUSTOM_B"})
        tree.update_aggregates(name, uuids("agg0", "agg1"))
        tree.update_resources(name, {"PMEM": {"ns0", "ns1"}})
    return tree


def tree_content(tree):
    """Return the data of all providers of a tree, in order."""
    return [tree.data(uuid) for uuid in tree.get_provider_uuids()]
