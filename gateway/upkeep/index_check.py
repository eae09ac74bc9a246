"""What a comparison of the index found, in the shape of an answer."""

from collections.abc import Iterable
from functools import reduce

import msgspec

from gateway.shapes.replies.audit import Check, Verification
from gateway.shapes.replies.models import IndexCheck, IndexDifference
from projections.comparing import Drift, SetSum
from projections.items import Item
from projections.recovery import Examined

INDEX_DRIFT = 13


def checked(found: Examined, *, position: int, incarnation: int) -> IndexCheck:
    """Return the answer; exit 13 if an entry differs, or does not come up when it is searched for."""
    compared, probed = found.compared, found.probed
    expected, held = _whole(compared.expected.values()), _whole(compared.found.values())
    keys = compared.expected.keys() | compared.found.keys()
    differing = [key for key in keys if compared.expected.get(key, SetSum()) != compared.found.get(key, SetSum())]
    is_well = not (compared.drifted or differing or probed.failed)
    return IndexCheck(
        ok=is_well,
        exit_code=0 if is_well else INDEX_DRIFT,
        cursor=found.cursor,
        position=position,
        incarnation=incarnation,
        entries=found.entries,
        expected=expected.count,
        pending=compared.pending,
        parked=compared.parked,
        skipped=compared.skipped,
        counts=dict(compared.counts),
        differences=tuple(_difference(one) for one in compared.first),
        partitions=len(keys),
        partitions_differing=len(differing),
        digest=held.hex,
        expected_digest=expected.hex,
        probed=probed.probed,
        unprobed=probed.failed,
    )


def judged(report: Verification, found: IndexCheck | str) -> Verification:
    """Return the report of a whole pass with what the index's own check found, or why it was not made."""
    outcome = Check(status="skipped", why=found) if isinstance(found, str) else _outcome(found)
    exit_code = report.exit_code or INDEX_DRIFT * (outcome.status == "failed")
    return msgspec.structs.replace(
        report, checks={**report.checks, "index": outcome}, ok=exit_code == 0, exit_code=exit_code
    )


def _outcome(found: IndexCheck) -> Check:
    if found.ok:
        return Check(status="ok")
    drift = ", ".join(f"{number:,} {kind}" for kind, number in found.counts.items() if number)
    unfound = f"{len(found.unprobed):,} not found by their own vectors" if found.unprobed else ""
    why = "; ".join(part for part in (drift, unfound) if part) or "the digests of what is held differ"
    return Check(status="failed", why=f"{why}; `corrigenda recover` mends it")


def _whole(sums: Iterable[SetSum]) -> SetSum:
    return reduce(SetSum.both, sums, SetSum())


def _difference(drift: Drift) -> IndexDifference:
    item = Item.parse(drift.item)
    return IndexDifference(kind=drift.kind, item=item.lineage, revision_id=item.revision, partition=drift.partition)
