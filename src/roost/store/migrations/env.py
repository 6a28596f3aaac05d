"""The script of alembic: runs the migrations on the connection of the caller.

They run in the transaction of the caller or, without one, each in its own.
"""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
    transactional_ddl=True,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
