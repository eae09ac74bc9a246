"""What people read of proofs: exports, checkpoints, and what a verification found. Pure, and inert as all views."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cli.text import Paint, count, inert, plain, table

if TYPE_CHECKING:
    from gateway.shapes.replies.audit import BundleVerification, Export

_CHECKPOINT = ("origin", "size", "root", "public_key")


def verification(report: Mapping[str, Any], *, paint: Paint = plain) -> str:  # Any: the JSON form of a VerifyReport
    """One line per check that was made, one for all that were not, and the verdict."""
    made = {name: check for name, check in report["checks"].items() if check["status"] != "skipped"}
    rows = [(name, str(check["status"]), _finding(check)) for name, check in made.items()]
    lines = [
        paint("red", line) if row[1] == "failed" else line
        for line, row in zip(table(rows).splitlines(), rows, strict=True)
    ]
    if skipped := [name for name in report["checks"] if name not in made]:
        lines.append(f"not checked: {', '.join(skipped)}")
    unread = report["size"] - report["events"]
    only = f" read, {unread:,} not read" if unread > 0 else ""
    gone = f", {count(report['erased'], 'payload')} erased with certificate" if report.get("erased") else ""
    counted = f"{count(report['events'], 'event')}{only}, ledger size {report['size']:,}{gone}"
    if report["ok"]:
        verdict = paint("green", f"ok: {counted}")
    else:
        verdict = paint("red", f"NOT OK: {counted}; exit {report['exit_code']}")
    root = [f"root {report['root']}"] if report.get("root") else []
    return "\n".join([*lines, *root, verdict])


def _finding(check: Mapping[str, Any]) -> str:  # Any: JSON
    at = check.get("first_bad_position")
    parts = [
        "" if at is None else f"first at {at}",
        *(f"{name} {check[name]}" for name in ("expected", "found") if check.get(name) is not None),
        str(check.get("why") or ""),
    ]
    return inert("; ".join(part for part in parts if part))


def export(made: "Export") -> str:
    """Where a bundle lies, and what it is a proof of."""
    withheld = f", {count(made.payloads_withheld, 'payload')} withheld" if made.payloads_withheld else ""
    return "\n".join(
        [
            f"{inert(made.path)}: {count(made.events, 'event')}{withheld}, {made.bytes:,} bytes",
            f"log {inert(made.origin)}, size {made.size:,}, root {made.root}",
            f"recorded at position {made.position}",
        ]
    )


def bundle(found: "BundleVerification", *, paint: Paint = plain) -> str:
    """The verdict, what it says and does not say, and where it failed."""
    lines = [paint("green" if found.ok else "red", found.verdict.upper() if not found.ok else found.verdict)]
    if found.finding is not None:
        check, place, expected, there = (inert(found.finding[name]) for name in ("check", "place", "expected", "found"))
        lines.append(f"{check} at {place}: expected {expected}, found {there}")
    if found.ok:
        payloads = ", ".join(f"{number:,} {told}" for told, number in found.payloads.items() if number)
        lines.append(f"log {inert(found.origin or '')}, size {found.size:,}, root {found.root}")
        lines.append(f"{count(found.events, 'event')} in {count(found.stream_count, 'stream')}; payloads: {payloads}")
    return "\n".join([*lines, *(f"- {inert(one)}" for one in found.says)])


def checkpoint(said: Mapping[str, Any]) -> str:  # Any: JSON
    """What a checkpoint says, and the key that signed it."""
    return table([(name.replace("_", " "), inert(str(said[name]))) for name in _CHECKPOINT])
