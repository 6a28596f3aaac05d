"""The Placement API in the caller's process. Read ``context`` first."""
