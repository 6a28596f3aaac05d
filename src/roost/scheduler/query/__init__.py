"""The query to Placement, from flavor, image, request and settings. Read ``build`` first.

``build``: the whole query, step by step.
``draft``: a mutable query.
``extra_spec_groups``: groups of flavor, image and request.
``processors``: VCPU and PCPU.
``flavor_devices``: encryption, TPM, firmware and persistent memory.
``pci_requests``: PCI requests of flavors, and their groups.
``destination``: required aggregates, tree and hosts.
``prefilter``: the contract of pre-filters.
``prefilters``: one file per pre-filter.
``device_demand``: the amounts of one class in a request.
``request_lookup``: requests from documents, with names resolved.
``query_string``: the query in the form of the Placement API.
"""
