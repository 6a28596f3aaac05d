"""The Placement API in the process of whoever asks it: ``context`` is the way in."""
