"""Bundles of a whole log that an enemy made who has the issuer's key, and so signs what no ledger would write.

Each is made of a good one of more than 256 entries: two tiles of entries, two of payloads, and the tree over them.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ledger import digest, notes, tiles, tree
from ledger.bundle import layout
from ledger.notes import Checkpoint
from tests.hostile import Case, Handed, sign, with_changed, with_checkpoint, with_file

ENTRIES, PAYLOADS, LEAVES = "tile/entries/000", "tile/payloads/000", "tile/0/000"
LENGTH_BYTES = {ENTRIES: 2, PAYLOADS: 4}
Records = list[bytes]


def records_of(raw: bytes, length_bytes: int) -> Records:
    """Return the records of a tile."""
    found: Records = []
    while raw:
        end = length_bytes + int.from_bytes(raw[:length_bytes], "big")
        found.append(raw[length_bytes:end])
        raw = raw[end:]
    return found


def tile_of(records: Records, length_bytes: int) -> bytes:
    """Return the tile of these records."""
    return b"".join(len(one).to_bytes(length_bytes, "big") + one for one in records)


def log_of(made: Handed) -> Records:
    """Return every entry, in the order of the log."""
    names = sorted(name for name in made.names() if name.startswith("tile/entries/"))
    return [one for name in names for one in records_of((made.path / name).read_bytes(), 2)]


def without_payload(made: Handed) -> int:
    """Return the position of an entry that never had a payload."""
    return next(at for at, raw in enumerate(log_of(made)) if json.loads(raw)["payload_sha256"] is None)


def with_records(tile: str, change: Callable[[Records, Handed], object], *, alone: int = 14) -> Case:
    """Return a tile whose records were changed, listed and signed."""

    def act(made: Handed) -> None:
        before = (made.path / tile).read_bytes()
        records = records_of(before, LENGTH_BYTES[tile])
        change(records, made)
        after = tile_of(records, LENGTH_BYTES[tile])
        assert after != before
        (made.path / tile).write_bytes(after)
        sign(made)

    return Case(act, alone=alone)


def relogged(change: Callable[[Records], object]) -> Case:
    """Return another log, in a tree and under a checkpoint that both bear it out; payloads and chain are as before."""

    def act(made: Handed) -> None:
        log = log_of(made)
        before = [*log]
        change(log)
        assert log != before
        for folder in ("entries", "0", "1"):
            shutil.rmtree(made.path / "tile" / folder)
        leaves = [digest.leaf(raw) for raw in log]
        for tile in tiles.of_size(len(log), tiles.ENTRIES):
            _put(made, tiles.path(tile), tiles.bundle(tile, log[tile.first : tile.first + tile.width]))
        for tile, raw in tiles.grow(len(log), lambda first, count: b"".join(leaves[first : first + count])):
            _put(made, tiles.path(tile), raw)
        signed = notes.sign_checkpoint(Checkpoint(made.origin, len(log), tree.root(leaves)), made.signing)
        (made.path / layout.CHECKPOINT).write_bytes(signed)
        sign(made)

    return Case(act)


def with_lines(change: Callable[[list[dict[str, Any]]], object], *, alone: int = 14) -> Case:  # Any: JSON
    """Return a readable chain whose lines were changed, listed and signed."""

    def act(made: Handed) -> None:
        path = made.path / layout.CHAIN
        before = path.read_bytes()
        lines = [json.loads(line) for line in before.splitlines()]
        change(lines)
        after = b"".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" for line in lines)
        assert after != before
        path.write_bytes(after)
        sign(made)

    return Case(act, alone=alone)


def acted(act: Callable[[Path], object], *, alone: int = 14) -> Case:
    """Return a bundle in whose directory something was done, listed and signed."""

    def done(made: Handed) -> None:
        act(made.path)
        sign(made)

    return Case(done, alone=alone)


def _put(made: Handed, name: str, raw: bytes) -> None:
    (made.path / name).parent.mkdir(parents=True, exist_ok=True)
    (made.path / name).write_bytes(raw)


def _partial(made: Path, kind: str) -> Path:
    """Return the second tile of a kind, which is not full."""
    (found,) = (made / "tile" / kind / "001.p").iterdir()
    return found


def _remove(path: Path) -> None:
    path.unlink()
    if not any(path.parent.iterdir()):
        path.parent.rmdir()


def _widen(made: Path) -> None:
    """Give the second tile of entries the name of a full one."""
    aside = _partial(made, "entries").rename(made / "aside")
    (made / "tile/entries/001.p").rmdir()
    aside.rename(made / "tile/entries/001")


def _doubled(made: Path, kind: str) -> None:
    shutil.copy(made / "tile" / kind / "000", made / "tile" / kind / "002")


def _swap(items: Any, first: int = 3, second: int = 4) -> None:  # Any: a list of whatever
    items[first], items[second] = items[second], items[first]


def _set(items: Records, at: int, value: bytes) -> None:
    items[at] = value


def _altered(raw: bytes) -> bytes:
    return raw[:-3] + bytes([raw[-3] ^ 1]) + raw[-2:]


def _single(name: str) -> Case:
    return Case(lambda made: (_put(made, name, b"x"), sign(made)))


def _given(records: Records) -> int:
    """Return the place of a payload that is given, beyond the first few."""
    return next(at for at, one in enumerate(records) if at > 5 and one)


def _stream_of_two(lines: list[dict[str, Any]]) -> int:  # Any: JSON
    """Return which line tells the last event of a stream that has more than one."""
    return max(at for at, line in enumerate(lines) if line["stream_seq"] > 0)


def _size(change: Callable[[int], int]) -> Case:
    def text(made: Handed, said: Checkpoint) -> str:
        return (made.path / layout.CHECKPOINT).read_text().partition("\n\n")[0].replace(
            f"\n{said.size}\n", f"\n{change(said.size)}\n"
        ) + "\n"  # fmt: skip

    return with_checkpoint(text, proofs=False)


TILED: dict[str, Case] = {
    # ---- entries
    "entry_missing": with_records(ENTRIES, lambda all_of, _: all_of.pop(7)),
    "entry_doubled": with_records(ENTRIES, lambda all_of, _: all_of.insert(7, all_of[7])),
    "entries_swapped": with_records(ENTRIES, lambda all_of, _: _swap(all_of)),
    "entry_altered": with_records(ENTRIES, lambda all_of, _: _set(all_of, 7, _altered(all_of[7]))),
    "entry_of_nothing": with_records(ENTRIES, lambda all_of, _: _set(all_of, 7, b"")),
    "entries_cut": with_changed(ENTRIES, lambda raw: raw[:-1]),
    "entries_too_long": with_changed(ENTRIES, lambda raw: raw + b"\0"),
    "entries_with_one_more": with_changed(ENTRIES, lambda raw: raw + b"\0\2{}"),
    "entry_length_lies": with_changed(ENTRIES, lambda raw: b"\xff\xff" + raw[2:]),
    "entries_of_nothing": with_file(ENTRIES, b""),
    "entry_tile_missing": acted(lambda made: _remove(_partial(made, "entries"))),
    "entry_tile_doubled": acted(lambda made: _doubled(made, "entries")),
    "entry_tile_of_another_width": acted(_widen),
    "relogged_missing": relogged(lambda log: log.pop(7)),
    "relogged_end_missing": relogged(lambda log: log.pop()),
    "relogged_doubled": relogged(lambda log: log.insert(7, log[7])),
    "relogged_swapped": relogged(_swap),
    "relogged_altered": relogged(lambda log: _set(log, 7, log[7].replace(b'"v":1', b'"v": 1'))),
    "relogged_too_deep": relogged(lambda log: _set(log, 7, b"[" * 16_000)),
    # ---- payloads
    "payload_missing": with_records(PAYLOADS, lambda all_of, _: all_of.pop(_given(all_of))),
    "payload_withheld_in_silence": with_records(
        PAYLOADS,
        lambda all_of, _: _set(all_of, _given(all_of), b""),
        alone=0,  # it does not read what a line says
    ),
    "payload_doubled": with_records(PAYLOADS, lambda all_of, _: all_of.insert(9, all_of[_given(all_of)])),
    "payloads_swapped": with_records(PAYLOADS, lambda all_of, _: _swap(all_of, *_two(all_of))),
    "payload_altered": with_records(
        PAYLOADS, lambda all_of, _: _set(all_of, _given(all_of), _altered(all_of[_given(all_of)]))
    ),
    "payload_of_salt_only": with_records(PAYLOADS, lambda all_of, _: _set(all_of, _given(all_of), bytes(32))),
    "payload_of_an_entry_that_has_none": with_records(
        PAYLOADS, lambda all_of, made: _set(all_of, without_payload(made), bytes(32) + b'{"reason":null}')
    ),
    "payload_too_deep": with_records(
        PAYLOADS, lambda all_of, _: _set(all_of, _given(all_of), bytes(32) + b"[" * 200_000)
    ),
    "payload_too_large": with_records(PAYLOADS, lambda all_of, _: _set(all_of, _given(all_of), bytes(300_000))),
    "payload_length_lies": with_changed(PAYLOADS, lambda raw: b"\xff\xff\xff\xff" + raw[4:]),
    "payload_length_lies_a_little": with_changed(PAYLOADS, lambda raw: b"\0\0\0\x23" + raw[4:]),
    "payloads_cut": with_changed(PAYLOADS, lambda raw: raw[:-1]),
    "payloads_without_the_last": with_changed(PAYLOADS, lambda raw: tile_of(records_of(raw, 4)[:-1], 4)),
    "payloads_too_long": with_changed(PAYLOADS, lambda raw: raw + bytes(4)),
    "payloads_of_nothing": with_file(PAYLOADS, b""),
    "payload_tile_missing": acted(lambda made: _remove(_partial(made, "payloads"))),
    "payload_tile_beyond_the_log": acted(lambda made: _doubled(made, "payloads")),
    "payload_tiles_missing": acted(lambda made: shutil.rmtree(made / "tile" / "payloads")),
    "payload_tile_unlisted": Case(lambda made: _doubled(made.path, "payloads")),
    # ---- the tree, whose own bytes the small program leaves out
    "leaf_tile_missing": acted(lambda made: _remove(made / LEAVES), alone=0),
    "leaf_tile_beyond_the_log": acted(lambda made: _doubled(made, "0"), alone=0),
    "leaves_swapped": with_changed(LEAVES, lambda raw: raw[32:64] + raw[:32] + raw[64:], alone=0),
    "leaves_cut": with_changed(LEAVES, lambda raw: raw[:-1], alone=0),
    "root_tile_altered": with_changed("tile/1/000.p/1", lambda raw: bytes(32), alone=0),
    "size_one_more": _size(lambda size: size + 1),
    "size_one_less": _size(lambda size: size - 1),
    "size_of_nothing": _size(lambda size: 0),
    "size_beyond_all_bounds": _size(lambda size: 2**50),
    # ---- what is told
    "line_missing": with_lines(lambda lines: lines.pop(_stream_of_two(lines))),
    "line_of_a_payload_missing": with_lines(lambda lines: lines.pop(0)),
    "line_doubled": with_lines(lambda lines: lines.insert(7, lines[7])),
    "lines_swapped": with_lines(_swap),
    "line_reworded": with_lines(lambda lines: lines[7].update(actor_name="human:eve"), alone=0),
    "line_of_no_entry": with_lines(lambda lines: lines.append({**lines[-1], "seq": lines[-1]["seq"] + 1})),
    "no_lines": with_file(layout.CHAIN, b""),
    "chain_too_deep": with_file(layout.CHAIN, b'{"seq":0,' + b"[" * 1_000_000),
    "chain_without_breaks": with_changed(layout.CHAIN, lambda raw: raw.replace(b"\n", b" ")),
    "erasure_invented": with_file(
        layout.ERASURES, b'{"seq":1,"erasure":"era_01JZ8Q0000000000000000000E","erased_by":2,"certified_by":3}\n'
    ),
    # ---- the other form beside it
    "an_envelope_of_its_own": _single("envelopes/7"),
    "a_proof_of_its_own": _single("proofs/7.tlog-proof"),
    "a_payload_of_its_own": _single("payloads/7"),
    "empty_folder": Case(lambda made: (made.path / "tile" / "empty").mkdir()),
}


def _two(records: Records) -> tuple[int, int]:
    """Return the places of two payloads that differ."""
    first = _given(records)
    return first, next(at for at, one in enumerate(records) if at > first and one and one != records[first])


def cases() -> Iterator[tuple[str, Case]]:
    """Yield every case with its name."""
    yield from ((f"tiled-{name}", case) for name, case in TILED.items())
