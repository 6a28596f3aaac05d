"""A stand-in for oslo.config, for plug-ins on machines that lack it."""
