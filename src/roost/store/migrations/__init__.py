"""Migrations of the schema.

Since version 0011, each migration has a ``phase``. One with the phase ``expand`` only adds tables, indexes, and columns
with a default. It runs beside processes of the version before, maybe twice. One with the phase ``contract`` runs when
no process of an older version lives. It may delete what only they use, and sets ``compatibility.readable_from``.

If the attribute ``is_beside`` of alembic's configuration is true, processes run. Then on PostgreSQL create an index on
an earlier table with CONCURRENTLY, in an ``autocommit_block`` of alembic.

``mariadb_tables``: the tables of a new MariaDB database.
``env``: the script of alembic.
``versions``: the migrations, one file per schema version.
"""
