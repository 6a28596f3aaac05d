"""A stand-in for oslo.utils, for plug-ins on machines that lack it."""
