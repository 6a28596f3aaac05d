"""What Nova has in ``nova.api.validation``: validators of extra specs."""
