"""Notifications ``scheduler.select_destinations`` on Nova's message bus, as nova-scheduler sends them.

``notification_options``: options of nova.conf: formats, drivers, topics and brokers.
``selection_notifier``: from a call and its outcome to notifications.
``spec_payload``: the versioned payload of a RequestSpec.
``legacy_payload``: the unversioned payload of a RequestSpec.
``notification_message``: the message around a payload, with the context of its caller.
``notification_sender``: the sending thread: a bounded queue, and confirmations of the broker.
"""
