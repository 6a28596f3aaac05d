"""A stand-in for oslo.serialization, for plug-ins on machines without it.

``jsonutils``: JSON.
"""
