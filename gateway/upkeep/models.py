"""The read models as a whole: are they what the events make of them, and how far are they. Nothing is changed here."""

from collections.abc import Iterable, Mapping

import msgspec

from gateway.shapes.replies import audit as replies
from gateway.shapes.replies.audit import Verification
from gateway.shapes.replies.models import ModelDifference, ModelsCheck, ModelsStatus
from ledger.appending import PROJECTOR_VERSION
from ledger.errors import failure
from ledger.store import Store
from ledger.verify import Report
from projections.checking import PROJECTION_DRIFT, Check, rows_of
from projections.digests import QUERIES, Difference

BROKEN_FIRST = "the ledger itself is not what was written, or could not be checked: there is nothing to compare with"
ONLY_WHOLE = "they are compared in a pass over the whole ledger, and not all of it was read"


def differences(found: Iterable[Difference]) -> tuple[ModelDifference, ...]:
    """Return what differs in the shape of an answer."""
    return tuple(ModelDifference(table=one.table, key=one.key, expected=one.expected, found=one.found) for one in found)


def judged(report: Verification, check: Check) -> Verification:
    """Return the report of a pass in which `check` was handed every event, with what it found."""
    outcome = _outcome(report.checks, check)
    failed = outcome.status == "failed"
    exit_code = min((code for code in (report.exit_code, PROJECTION_DRIFT * failed) if code), default=0)
    checks = {**report.checks, "projections": outcome}
    return msgspec.structs.replace(report, checks=checks, ok=exit_code == 0, exit_code=exit_code)


def checked(report: Report, check: Check) -> ModelsCheck:
    """Return what a check found. Errors: SCHEMA_MISMATCH (another projector version), INTEGRITY_BROKEN (the ledger)."""
    if check.problem is not None:
        raise check.problem
    if not report.ok or not check.is_whole:
        raise failure(
            "INTEGRITY_BROKEN",
            "The read models were to be compared with what the events make of them, and the ledger itself is not what "
            "was written, or could not be checked. `corrigenda verify` says where.",
            exit_code=report.exit_code or PROJECTION_DRIFT,
        )
    found = check.result()
    well = not found.differences and not found.cycles
    return ModelsCheck(
        ok=well,
        exit_code=0 if well else PROJECTION_DRIFT,
        generation=found.generation,
        position=found.position,
        rows=found.rows,
        differences=differences(found.differences),
        cycles=found.cycles,
    )


def status(store: Store) -> ModelsStatus:
    """Return which generation is live, what it holds, and whether another one is being built."""
    with store.transaction(snapshot=True):
        row = store.head()
        rows, last = rows_of(store, row.gen)
        building = store.query(QUERIES["find_rebuild"], {"gen": row.gen})
    return ModelsStatus(
        generation=row.gen,
        version=row.projector,
        expected_version=PROJECTOR_VERSION,
        position=row.seq,
        lag=row.seq - last,
        rows=rows,
        rebuild=next(
            ({"generation": gen, "position": seq, "version": made_by} for gen, seq, made_by in building), None
        ),
    )


def _outcome(checks: Mapping[str, replies.Check], check: Check) -> replies.Check:
    if check.problem is not None:
        return replies.Check(status="failed", why=check.problem.message)
    if any(one.status == "failed" for name, one in checks.items() if name not in ("anchor", "checkpoints")):
        return replies.Check(status="skipped", why=BROKEN_FIRST)
    if not check.is_whole:
        return replies.Check(status="skipped", why=ONLY_WHOLE)
    found = check.result()
    circle = f"{', '.join(found.cycles)} superseding itself through others" if found.cycles else None
    if not found.differences and circle is not None:
        return replies.Check(status="failed", expected="nothing that supersedes itself", found=circle)
    if not found.differences:
        return replies.Check(status="ok", why=f"generation {found.generation}, {sum(found.rows.values())} rows")
    first, *more = found.differences
    said = [f"also in {', '.join(one.table for one in more)}"] if more else []
    return replies.Check(
        status="failed",
        expected=_row(first, first.expected),
        found=_row(first, first.found),
        why="; ".join([*said, *([circle] if circle else [])]) or None,
    )


def _row(difference: Difference, parts: tuple[str, ...]) -> str:
    said = "; ".join(parts) or "no such row"
    return f"in {difference.table} {difference.key}: {said}"
