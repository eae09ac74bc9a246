"""The read models of corrections, standing over time and the log; and the bytes of evidence."""

from migrations import run_sql_beside

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Run the step."""
    run_sql_beside(__file__)
