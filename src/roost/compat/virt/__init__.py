"""What Nova has in ``nova.virt``, as far as filters and drivers of others import it."""
