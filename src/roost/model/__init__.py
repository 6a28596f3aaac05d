"""Data types: frozen structs that encode to JSON, without I/O.

``devices``: NUMA cells and PCI devices.
``documents``: documents of commands: fleets, requests, answers.
``evidence``: decisions, explanations, capacities and refusals.
``placement``: wire format of the Placement API.
``settings``: settings, one module per section or group of sections.
``work``: operations, orders, agents and guests.
``allocation``: allocation candidates.
``flavor``: flavors.
``fleet``: a whole fleet, and the events of a trace.
``group``: server groups and their policies.
``host``: hosts and the facts that they report; aggregates.
``image``: images, and old names of their properties.
``names``: syntax of names, uuids and amounts.
``provider``: providers and inventories.
``question``: messages between a server and its reader process.
``request``: requests for instances, and candidate queries.
``stored_decision``: compact stored form of a decision.
``stored_names``: stored versions of named flavors and images.
``struct_decoders``: decoders that must exist before threads start.
``switches``: texts for true and false.
``writes``: writes of a commit, also in the feed and the columns.
"""
