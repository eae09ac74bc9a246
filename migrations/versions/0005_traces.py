"""What single retrievals saw, chose and left out."""

from migrations import run_sql_beside

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Run the step."""
    run_sql_beside(__file__)
