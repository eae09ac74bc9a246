"""Corrections as records: recorded with and without a memory, confirmed, superseded, revoked, listed and counted."""

from gateway.service import Gateway

EVERYTHING = {
    "agent": "ap-reconciler", "original_value": "THC", "corrected_value": "DTHC", "field": "chargeCode",
    "entity_key": "MSC", "run": "r1", "session": "s1", "original_input": "invoice 7", "reason": "billed apart",
    "tags": ("ap", "msc"), "visibility": "user", "user": "ana",
}  # fmt: skip


def plain(gateway: Gateway, original: str = "THC", corrected: str = "DTHC", **more: object) -> str:
    """Record a correction of the agent `ap`, and return its id."""
    given = {"agent": "ap", "original_value": original, "corrected_value": corrected, **more}
    return gateway.record_correction(**given).correction_id or ""  # pyright: ignore[reportArgumentType]


def listed(gateway: Gateway, **asked: object) -> list[str]:
    """Return the ids of the corrections that are listed."""
    return [item.correction_id for item in gateway.list_corrections(**asked)]  # pyright: ignore[reportArgumentType]


def test_every_field_comes_back_unchanged(gateway: Gateway) -> None:
    """AG-01, AG-51: given all optional fields, when it is recorded, then show and list give every one of them back."""
    receipt = gateway.record_correction(**EVERYTHING)
    assert receipt.correction_id is not None and receipt.correction_id.startswith("cor_")
    shown = gateway.show_correction(receipt.correction_id)
    assert {name: getattr(shown, name) for name in EVERYTHING} == EVERYTHING
    assert (shown.correction_id, shown.state, shown.origin) == (receipt.correction_id, "active", "human")
    assert (shown.superseded_by, shown.memory, shown.stream_version, shown.position) == (
        None,
        None,
        1,
        receipt.position,
    )
    assert gateway.list_corrections(agent="ap-reconciler") == (shown,)
