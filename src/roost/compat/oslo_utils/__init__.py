"""A stand-in for oslo.utils, for plug-ins on machines without it."""
