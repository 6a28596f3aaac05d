"""A stand-in for oslo.utils, for plug-ins on machines without it.

``strutils``: truth values of texts.
``timeutils``: times.
``versionutils``: versions.
"""
