"""The store for several processes: one PostgreSQL database."""
