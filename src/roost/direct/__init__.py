"""The Placement API in the caller's process, and repairs of a stopped deployment. Read ``context`` first.

``context``: ``roost.PlacementDirect``, a client within a ``with`` block.
``database_config``: the database and settings of the argument of ``roost.PlacementDirect``.
``direct_client``: the client without keystoneauth1.
``keystone_adapter``: the client as a keystoneauth adapter.
``direct_report``: transport of a report client.
``offline_report``: a report client on a stopped deployment.
``heal_allocations``: claims missing allocations of instances.
``rebuild_claim``: the claim of an instance on its current host.
``delete_orphans``: finds and deletes orphaned allocations.
``sync_aggregates``: adds providers to the aggregates of hosts.
``migrate_inventory``: reshapes inventories as a driver requires.
"""
