"""The questions of docs/QUERIES.md, asked as they stand there, of a real export."""

import re
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from tests.integration.conftest import Here

QUERIES = Path(__file__).parents[2] / "docs" / "QUERIES.md"


class Days:
    """A clock that a test sets to a day."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def at(self, month: int, day: int) -> None:
        """Let it be noon of a day of 2026."""
        self.now = datetime(2026, month, day, 12, tzinfo=UTC)


def questions() -> list[tuple[str, str, str]]:
    """Return each question of the document: what is asked, how, and the answer."""
    parts = QUERIES.read_text(encoding="utf-8").split("\n## ")[1:]
    found = [
        (part.split("\n")[0], sql[1], answer[1])
        for part in parts
        for sql in [re.search(r"```sql\n(.*?)```", part, re.DOTALL)]
        for answer in [re.search(r"```text\n(.*?)```", part, re.DOTALL)]
        if sql and answer
    ]
    assert len(found) == 3
    return found


def view() -> str:
    """Return the statement that all questions rely on."""
    made = re.search(r"```sql\n(CREATE OR REPLACE VIEW .*?)```", QUERIES.read_text(encoding="utf-8"), re.DOTALL)
    assert made is not None
    return made[1]


def test_the_documented_questions_have_the_documented_answers(
    open_here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who changed what in the third quarter, what was believed on a day, and what became known late."""
    days = Days()
    ana = open_here(clock=days, embedder="none")
    days.at(6, 20)
    ana.remember("Deploys happen on Mondays.", memory_id="deploys")
    ana.remember("Ben is on call.", memory_id="on-call")
    ana.close()
    days.at(7, 14)
    ben = open_here(actor="human:ben", clock=days, embedder="none")
    ben.correct("deploys", "Deploys happen on Tuesdays.", reason="the calendar moved")
    days.at(8, 20)
    ben.forget("on-call", reason="the team is gone")
    ben.close()
    days.at(9, 2)
    ana = open_here(clock=days, embedder="none")
    ana.patch("deploys", valid_from="2026-07-01T00:00:00Z", reason="for the audit")
    days.at(10, 5)
    ana.correct("deploys", "Deploys happen on Wednesdays.", reason="asked Ben")
    ana.export_supersession(["deploys", "on-call"], tmp_path / "bundle")
    monkeypatch.chdir(tmp_path / "bundle")
    with duckdb.connect() as database:
        database.execute(view())
        for asked, sql, answer in questions():
            rows = database.execute(sql).fetchall()
            told = "".join("|".join("" if one is None else str(one) for one in row) + "\n" for row in rows)
            assert told == answer, asked
