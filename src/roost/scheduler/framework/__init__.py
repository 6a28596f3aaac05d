"""The basis of all rules: plug-in contract, host views, options and sandbox.

``plugin``: the plug-in contract of filters and weighers.
``base_rule``: base classes of filters and weighers.
``spec``: a request as rules read it.
``host_view``: hosts as rules read them.
``hint_names``: the scheduler hints that rules read.
``host_attributes``: host values by Nova's attribute names.
``rule_options``: conversion of settings into options.
``sandbox``: isolation of third-party rules.
``reasons``: texts of refusals.
``request_key``: cache keys of requests.
``group_slots``: slots of server groups.
``hw_settings``: settings of flavor and image under one name.
``image_properties``: normalized image properties.
``image_text``: image properties as text.
``memoize``: a cache of one result.
"""
