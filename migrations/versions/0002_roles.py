"""Who may do what: roles, triggers that refuse, and row-level security by ledger."""

from migrations import make_roles, run_sql_beside

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Run the step."""
    make_roles()
    run_sql_beside(__file__)
