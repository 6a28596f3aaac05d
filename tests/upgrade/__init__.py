"""Rolling upgrades: the program before the first expanding migration, and this one, on one database.

``python -m tests.upgrade --minutes 5`` runs each order for five minutes, and prints a table.

``older_program``: the wheel of the program before.
``load``: clients that change a fleet through one server.
``comparison``: the columns of a server, as its answers.
``rolling_upgrade``: the two orders.
"""
