"""Database servers, and stores with races and failures."""
