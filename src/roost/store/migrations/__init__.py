"""Migrations of the schema, which only add to it.

``mariadb_tables``: the tables of a new MariaDB database.
``env``: the script of alembic.
``versions``: the migrations, one file per schema version.
"""
