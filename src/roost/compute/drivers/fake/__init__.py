"""The fake driver. Read ``driver`` first.

``driver``: the driver.
``guests``: guests and their storage.
``layouts``: providers of a node, and their reshapes.
``parts``: GPUs and NUMA cells of a node.
``script``: nodes and faults, from TOML.
``faults``: random faults.
``options``: options of the driver.
"""
