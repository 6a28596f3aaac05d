"""Migrations of the schema, which only add to it.

``env``: the script of alembic.
``versions``: the migrations, one file per schema version.
"""
