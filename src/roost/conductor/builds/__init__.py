"""Building instances: claims, alternates and failures. Read ``super_conductor`` first.

``super_conductor``: schedules a request, and sends its instances to their cells.
``cell_conductor``: builds an instance on its host or an alternate.
``builder_product``: the interfaces that both conductors need.
``alternates``: the claim of the next alternate.
``remote_alternates``: the claim of the next alternate at a remote Placement.
``claim_transfer``: moves and releases claims of a build.
``build_failures``: counts of failed builds, and disabled services.
"""
