"""Accept requests: validate them, and commit the operation that carries them out."""
