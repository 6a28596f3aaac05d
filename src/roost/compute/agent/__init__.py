"""The host agent: a pure state machine, its journal, and the threads that run it."""
