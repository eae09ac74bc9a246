"""The ledger, its outbox, stored vectors and the first read models."""

from migrations import run_sql_beside

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Run the step."""
    run_sql_beside(__file__)
