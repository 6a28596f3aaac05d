"""The writes of the Placement API, planned on the columns: one file per resource.

``providers``, ``inventories``, ``traits``, ``resource_classes``, ``labels`` (a provider's traits and aggregates) and
``claims`` plan changes. ``ratios`` changes overcommit. ``reshapes`` combines inventories and claims. ``name_numbers``
numbers new names, and ``tree_bounds`` limits trees.
"""
