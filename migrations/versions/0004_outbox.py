"""What could not be carried, who carries, and up to where; and the leases of targets that processes share."""

from migrations import run_sql_beside

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Run the step."""
    run_sql_beside(__file__)
