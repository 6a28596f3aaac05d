"""A stand-in for oslo.config, for plug-ins on machines without it.

``cfg``: options and their values.
"""
