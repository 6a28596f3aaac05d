"""What Nova has in ``nova.compute``, as far as drivers of others import it."""
