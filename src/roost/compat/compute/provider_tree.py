"""Counterpart of ``nova.compute.provider_tree``: the tree for drivers to edit."""

from roost.compute.providers.provider_forest import ProviderData
from roost.compute.providers.provider_tree import ProviderTree

__all__ = ["ProviderData", "ProviderTree"]
