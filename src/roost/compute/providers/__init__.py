"""Provider trees, and the allocations on them.

``provider_tree``: the tree that drivers edit.
``provider_forest``: trees by uuid and name, without locks.
``held_allocations``: allocations of consumers, and their sums.
"""
