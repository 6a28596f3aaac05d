"""Checks before a service starts.

``nova_preflight``: settings, and the deployment of the Nova that Roost is to serve.
"""
