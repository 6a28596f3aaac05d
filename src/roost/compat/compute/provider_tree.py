"""What Nova has in ``nova.compute.provider_tree``: the tree that drivers edit."""

from roost.compute.providers.provider_forest import ProviderData
from roost.compute.providers.provider_tree import ProviderTree

__all__ = ["ProviderData", "ProviderTree"]
