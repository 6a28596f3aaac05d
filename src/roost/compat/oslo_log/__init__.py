"""A stand-in for oslo.log, for plug-ins on machines without it.

``log``: loggers.
"""
