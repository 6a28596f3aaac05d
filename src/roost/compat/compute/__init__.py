"""Counterpart of ``nova.compute``, for third-party drivers.

``provider_tree``: the tree for drivers to edit.
"""
