"""Moving instances: targets, orders and endings. Read ``try_targets`` first.

``try_targets``: tries the targets of a move in turn.
``targets``: the decision that chooses the targets.
``move_decision``: loads or repeats a decision.
``host_orders``: steps that send orders and wait for the answer.
``guests``: the guests in orders.
``adoption``: the claim of an instance moves to the host that holds its guest.
``migration``: the migration, and its claims and releases.
``endings``: ends of moves: the instance is on its target, on its source, or deleted.
"""
