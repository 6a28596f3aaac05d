"""What Nova has in ``nova.compute.provider_tree``: the tree that drivers edit."""

from roost.compute.forest import ProviderData
from roost.compute.tree import ProviderTree

__all__ = ["ProviderData", "ProviderTree"]
