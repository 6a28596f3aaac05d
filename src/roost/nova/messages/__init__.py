"""Nova's objects in messages, as JSON.

``nova_object``: reads and builds one object.
``request_spec``: RequestSpec, read as a request.
``selection``: Selection, built from a decision.
``no_valid_host``: NoValidHost, with Nova's reasons.
"""
