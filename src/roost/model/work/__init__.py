"""Work: operations, orders, agents and guests."""
