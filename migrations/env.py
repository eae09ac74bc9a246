"""Alembic's entry: runs the steps on the connection that `migrations.upgrade` hands over, in its transaction."""

from alembic import context

from migrations import SCHEMA

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table_schema=SCHEMA, target_metadata=None)
context.run_migrations()
