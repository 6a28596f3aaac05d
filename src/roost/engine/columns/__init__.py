"""The state as columns: growing arrays, and ``apply``, the only module that changes them."""
