"""Database servers, and stores that lose races."""
