"""The client of a Placement. Read ``report_client`` first.

``report_client``: all reads and writes of a host.
``flush``: writes of an edited tree.
``provider_cache``: the providers as last read.
``provider_records``: reads, creation and deletion of providers.
``provider_offers``: inventories, traits and aggregates of a provider.
``consumer_records``: allocations of consumers.
``placement_session``: requests and retries.
"""
