"""What Nova has in ``nova.api``, as far as plug-ins use it."""
