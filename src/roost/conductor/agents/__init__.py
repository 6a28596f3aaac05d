"""The protocol between the server and its agents: registration, orders, answers."""
