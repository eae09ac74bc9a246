"""Bundles that an enemy made, each by a few lines: with the issuer's key or without it, packed or not.

A *forger* has no key, and changes what others may have signed. An *issuer* has it, and signs what no ledger would
write: whatever is wrong then has to be found in the bytes themselves.
"""

import base64
import gzip
import io
import os
import re
import shutil
import socket
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger import digest, keys, notes, tiles, tree
from ledger.bundle import layout
from ledger.bundle.chain import Event, lines
from ledger.chain import Entry
from ledger.codec import decode_envelope
from ledger.notes import Checkpoint

TAMPERED, UNVERIFIABLE = 14, 15
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
MANY = 1_000_000
BIG = 4 << 30


class Handed(NamedTuple):
    """A bundle in a directory, the whole log that it is of, the key that checks it, and the one that signed it."""

    path: Path
    log: tuple[bytes, ...]
    key: str
    signing: Ed25519PrivateKey

    @property
    def origin(self) -> str:
        """Return the log's name."""
        return self.key.split("+")[0]

    def names(self) -> list[str]:
        """Return what lies in the bundle beside its listing."""
        found = [one.relative_to(self.path).as_posix() for one in self.path.rglob("*") if one.is_file()]
        return sorted(name for name in found if name != layout.FILES)

    def positions(self) -> list[int]:
        """Return the positions of the bundle's entries."""
        return layout.positions(self.names(), "envelopes")

    def file(self, name: str) -> Path:
        """Return where a file lies; `~` in its name stands for the last entry's position."""
        return self.path / (name.replace("~", str(self.positions()[-1])) if "~" in name else name)


class Case(NamedTuple):
    """What one enemy does to a copy of a bundle, which exits that may have, and whether it is packed afterwards."""

    act: Callable[[Handed], object]
    ours: int = TAMPERED
    alone: int = TAMPERED


def log_of(path: Path) -> tuple[bytes, ...]:
    """Return every entry of the log that a complete bundle holds."""
    names = sorted((path / "tile" / "entries").rglob("*"))
    return tuple(raw for one in names if one.is_file() for raw in tiles.unbundle(one.read_bytes()))


# ---------------------------------------------------------------- what an issuer can do


def sign(made: Handed, change: Callable[[str], str] = lambda text: text) -> None:
    """Sign the listing of what lies there now, after a change of its text."""
    files = {name: (made.path / name).read_bytes() for name in made.names()}
    listed = {name: layout.Listed(len(raw), digest.of_file(io.BytesIO(raw))) for name, raw in files.items()}
    text = change(layout.format_listing(made.origin, listed))
    note = notes.sign(text, made.origin, made.signing, layout.LISTING_BYTES_MAX)
    (made.path / layout.FILES).write_bytes(notes.format_note(note, layout.LISTING_BYTES_MAX))


def with_listing(change: Callable[[str], str]) -> Case:
    """Return a listing that was changed before it was signed."""
    return Case(lambda made: sign(made, change))


def with_file(name: str, raw: bytes, *, alone: int = TAMPERED) -> Case:
    """Return a file with other bytes, listed and signed. `~` in a name stands for the last entry's position."""

    def act(made: Handed) -> None:
        made.file(name).write_bytes(raw)
        sign(made)

    return Case(act, alone=alone)


def with_changed(name: str, change: Callable[[bytes], bytes], *, alone: int = TAMPERED) -> Case:
    """Return a file whose bytes are changed, listed and signed."""

    def act(made: Handed) -> None:
        path = made.file(name)
        before = path.read_bytes()
        after = change(before)
        assert after != before, name
        path.write_bytes(after)
        sign(made)

    return Case(act, alone=alone)


def with_checkpoint(text: Callable[[Handed, Checkpoint], str], *, proofs: bool = True) -> Case:
    """Return a checkpoint of another text, signed; the proofs name it."""

    def act(made: Handed) -> None:
        raw = (made.path / layout.CHECKPOINT).read_bytes()
        said = text(made, notes.parse_checkpoint(notes.parse_note(raw).text))
        new = notes.format_note(notes.sign(said, made.origin, made.signing))
        (made.path / layout.CHECKPOINT).write_bytes(new)
        for one in (made.path / "proofs").iterdir() if proofs else ():
            one.write_bytes(one.read_bytes().replace(raw, new))
        sign(made)

    return Case(act)


def relogged(made: Handed, position: int, entry: bytes) -> None:
    """Put another entry into the log, and make all that its bytes show up in as if it had been there.

    What the readable chain copies from its fields stays as it was.
    """
    log = [*made.log]
    log[position] = entry
    leaves = [digest.leaf(raw) for raw in log]
    root = tree.root(leaves)
    checkpoint = notes.sign_checkpoint(Checkpoint(made.origin, len(log), root), made.signing)
    (made.path / layout.CHECKPOINT).write_bytes(checkpoint)
    (made.path / layout.envelope(position)).write_bytes(entry)
    chain = (made.path / layout.CHAIN).read_bytes()
    for hashed in (digest.link, digest.leaf):
        chain = chain.replace(hashed(made.log[position]).hex().encode(), hashed(entry).hex().encode())
    (made.path / layout.CHAIN).write_bytes(chain)
    for one in made.positions():
        proof = layout.format_proof(one, tree.inclusion(one, leaves), checkpoint)
        (made.path / layout.proof(one)).write_bytes(proof)
    sign(made)


def _begun_elsewhere(made: Handed) -> None:
    """Make the bundle of a log of one entry, its payload withheld, that names an entry before it."""
    raw = made.log[0].replace(b'"prev_b3":"0', b'"prev_b3":"1')
    assert raw != made.log[0]
    for folder in ("envelopes", "payloads", "proofs"):
        shutil.rmtree(made.path / folder)
    for folder in ("envelopes", "proofs"):
        (made.path / folder).mkdir()
    checkpoint = notes.sign_checkpoint(Checkpoint(made.origin, 1, digest.leaf(raw)), made.signing)
    (made.path / layout.CHECKPOINT).write_bytes(checkpoint)
    (made.path / layout.envelope(0)).write_bytes(raw)
    (made.path / layout.proof(0)).write_bytes(layout.format_proof(0, [], checkpoint))
    hashes = {"hash": digest.link(raw), "stream_hash": digest.stream_link(raw)}
    event = Event(Entry(envelope=decode_envelope(raw), raw=raw, seal=b"", **hashes), None, "withheld")
    (made.path / layout.CHAIN).write_bytes(b"".join(lines([event], {})))
    sign(made)


def with_entry(change: Callable[[bytes], bytes]) -> Case:
    """Return the last entry in other bytes, in a tree, with proofs and under a checkpoint that all bear them out."""

    def act(made: Handed) -> None:
        position = made.positions()[-1]
        before = made.log[position]
        after = change(before)
        assert after != before
        relogged(made, position, after)

    return Case(act)


# ---------------------------------------------------------------- archives


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int | None = None) -> tarfile.TarInfo:
    """Return the header of a tar file's member."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    info.size = size or 0
    return info


def packed(made: Handed, *members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.USTAR_FORMAT) -> None:
    """Replace the directory by a tar file of its listing and these members."""
    raw = io.BytesIO()
    listing = (made.path / layout.FILES).read_bytes()
    with tarfile.open(fileobj=raw, mode="w", format=form) as tar:
        for info, content in ((member(layout.FILES, size=len(listing)), listing), *members):
            if info.size == 0:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    shutil.rmtree(made.path)
    made.path.write_bytes(raw.getvalue())


def in_archive(*members: tuple[tarfile.TarInfo, bytes]) -> Case:
    """Return a tar file with a true listing, and other members than it names."""
    return Case(lambda made: packed(made, *members))


def whole(made: Handed) -> list[tuple[tarfile.TarInfo, bytes]]:
    """Return the members that the listing names, in their order."""
    return [(member(name), (made.path / name).read_bytes()) for name in made.names()]


def with_header(change: Callable[[bytearray], None]) -> Case:
    """Return a whole tar file in which the header of the second member is changed, its checksum made right."""

    def act(made: Handed) -> None:
        packed(made, *whole(made))
        raw = bytearray(made.path.read_bytes())
        size = int(raw[124:136].rstrip(b"\0 "), 8)
        at = 512 + size + -size % 512
        header = raw[at : at + 512]
        change(header)
        header[148:156] = b"        "
        header[148:156] = b"%06o\0 " % sum(header)
        raw[at : at + 512] = header
        made.path.write_bytes(bytes(raw))

    return Case(act)


def with_archive(change: Callable[[bytes], bytes]) -> Case:
    """Return a whole tar file whose bytes are changed, or packed."""

    def act(made: Handed) -> None:
        packed(made, *whole(made))
        made.path.write_bytes(change(made.path.read_bytes()))

    return Case(act)


def _with_padding(raw: bytes) -> bytes:
    """Hide a byte behind the listing, where a tar file is filled up to whole blocks."""
    end = 512 + int(raw[124:136].rstrip(b"\0 "), 8)
    assert end % 512
    return raw[:end] + b"x" + raw[end + 1 :]


def _long(made: Handed) -> None:
    """Pack a listing that is as long as one may be, and that somebody else has signed."""
    (made.path / layout.FILES).write_bytes(_LONG)
    packed(made)


def _in_base_256(header: bytearray) -> None:
    header[124:136] = b"\x80" + int(header[124:136].rstrip(b"\0 "), 8).to_bytes(11, "big")


def _without_end(raw: bytes) -> bytes:
    files = raw.rstrip(b"\0")
    return files + bytes(-len(files) % 512)


def bomb(made: Handed) -> None:
    """Replace the bundle by a gzip file that is small, signed, and wants to be four gigabytes of a readable chain."""
    sign(made, lambda text: text.replace(_line(text, layout.CHAIN), f"{BIG} {'0' * 64} {layout.CHAIN}"))
    listing = (made.path / layout.FILES).read_bytes()
    before = [one for one in whole(made) if one[0].name < layout.CHAIN]
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for info, content in ((member(layout.FILES), listing), *before):
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    header = member(layout.CHAIN, size=BIG).tobuf(tarfile.USTAR_FORMAT)
    shutil.rmtree(made.path)
    front = raw.getvalue().rstrip(b"\0")
    zeros = gzip.compress(bytes(1 << 24), compresslevel=1)
    made.path.write_bytes(gzip.compress(front + bytes(-len(front) % 512) + header, compresslevel=1) + zeros * 8)


def _line(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.endswith(f" {name}"))


# ---------------------------------------------------------------- what a forger can do


def without(name: str) -> Case:
    """Return a file that is gone, and nothing signed anew."""
    return Case(lambda made: made.file(name).unlink())


def swapped(folder: str) -> Case:
    """Return two files of a folder in each other's place, listed and signed."""

    def act(made: Handed) -> None:
        first, second = sorted((made.path / folder).iterdir())[:2]
        a, b = first.read_bytes(), second.read_bytes()
        first.write_bytes(b)
        second.write_bytes(a)
        sign(made)

    return Case(act)


def doubled(name: str, other: str) -> Case:
    """Return a file once more under another name, listed and signed."""

    def act(made: Handed) -> None:
        shutil.copy(made.file(name), made.path / other)
        sign(made)

    return Case(act)


def replaced(name: str, put: Callable[[Path, Path], object]) -> Case:
    """Return something in a file's place that is no file: `put` gets the place, and the file, which lies aside now."""

    def act(made: Handed) -> None:
        place = made.path / name
        aside = made.path.with_name("aside")
        place.rename(aside)
        put(place, aside)

    return Case(act)


def _socket(place: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        folder = os.open(place.parent, os.O_PATH)
        try:
            one.bind(f"/proc/self/fd/{folder}/{place.name}")
        finally:
            os.close(folder)


def _only_a_pipe(made: Handed) -> None:
    shutil.rmtree(made.path)
    os.mkfifo(made.path)


def _sparse(name: str, size: int) -> Case:
    return Case(lambda made: os.truncate(made.path / name, size))


def _fresh(made: Handed, name: str) -> None:
    """Let another key of the same origin sign a checkpoint or a listing."""
    other = Ed25519PrivateKey.generate()
    path = made.path / name
    note = notes.parse_note(path.read_bytes(), layout.LISTING_BYTES_MAX)
    path.write_bytes(notes.format_note(notes.sign(note.text, made.origin, other), layout.LISTING_BYTES_MAX))
    if name != layout.FILES:
        sign(made)


def _with_both(made: Handed) -> None:
    """Add the right key's signature, altered, to a listing that another key signed."""
    path = made.path / layout.FILES
    note = notes.parse_note(path.read_bytes(), layout.LISTING_BYTES_MAX)
    (one,) = note.signatures
    false = notes.Signature(one.name, one.key_id, bytes(64))
    path.write_bytes(notes.format_note(notes.Note(note.text, (false,)), layout.LISTING_BYTES_MAX))


def _with_another(made: Handed) -> None:
    """Add a false signature of the key behind its true one."""
    path = made.path / layout.FILES
    note = notes.parse_note(path.read_bytes(), layout.LISTING_BYTES_MAX)
    false = notes.Signature(note.signatures[0].name, note.signatures[0].key_id, bytes(64))
    both = notes.Note(note.text, (*note.signatures, false))
    path.write_bytes(notes.format_note(both, layout.LISTING_BYTES_MAX))


def with_note_end(end: str) -> Case:
    """Return a listing that ends otherwise than with its signature's line break."""

    def act(made: Handed) -> None:
        path = made.path / layout.FILES
        path.write_bytes(path.read_bytes().removesuffix(b"\n") + end.encode())

    return Case(act)


def _in_disorder(text: str) -> str:
    version, origin, *lines = text.removesuffix("\n").split("\n")
    return "\n".join([version, origin, *reversed(lines), ""])


def _loose(encoded: str) -> str:
    """Spell 32 bytes of base64 with other bits where none count."""
    return encoded[:-2] + _ALPHABET[_ALPHABET.index(encoded[-2]) ^ 1] + "="


def _other_base64(raw: bytes) -> bytes:
    """Spell the first hash of a proof with other bits where none count."""
    lines = raw.decode().split("\n")
    return "\n".join([*lines[:2], _loose(lines[2]), *lines[3:]]).encode()


def _out_of_order(raw: bytes) -> bytes:
    return raw.replace(b'"schema":1', b'"v":1').replace(b'"v":1}', b'"schema":1}')


def _listing(made: Handed) -> bytes:
    return (made.path / layout.FILES).read_bytes()


def _many_signatures(raw: bytes) -> bytes:
    return raw + raw.splitlines(keepends=True)[-1] * 10_000


def _after_type(more: bytes) -> Callable[[bytes], bytes]:
    return lambda raw: raw[:-1] + more + b"}"


def _deep(raw: bytes) -> bytes:
    return raw.replace(b'"subjects":[]', b'"subjects":' + b"[" * 7_000 + b"]" * 7_000)


_LONG = b"a\n" * (31 << 20) + b"\n" + "\u2014 x ".encode() + b"A" * 96 + b"\n"
FORGED: dict[str, Case] = {
    **{f"without_{name}": without(name) for name in (
        "files", "checkpoint", "chain.jsonl", "erasures.ndjson", "report.json", "VERIFY.md", "verify.py",
        "viewer.html", "envelopes/~", "payloads/~", "proofs/~.tlog-proof",
    )},
    "unlisted_note": Case(lambda made: (made.path / "notes.txt").write_text("x")),
    "unlisted_payload": Case(lambda made: (made.path / "payloads" / "999").write_bytes(bytes(40))),
    "another_case": Case(lambda made: shutil.copy(made.path / "checkpoint", made.path / "Checkpoint")),
    "link": replaced("checkpoint", lambda place, aside: place.symlink_to(aside)),
    "link_out": replaced("checkpoint", lambda place, aside: place.symlink_to("/etc/passwd")),
    "folder_link": replaced("envelopes", lambda place, aside: place.symlink_to(aside, target_is_directory=True)),
    "hard_link_out": replaced("checkpoint", lambda place, aside: os.link(__file__, place)),
    "pipe": replaced("checkpoint", lambda place, aside: os.mkfifo(place)),
    "listing_pipe": replaced("files", lambda place, aside: os.mkfifo(place)),
    "socket": replaced("checkpoint", _socket),
    "folder_for_a_file": replaced("checkpoint", lambda place, aside: place.mkdir()),
    "listing_folder": replaced("files", lambda place, aside: place.mkdir()),
    "only_a_pipe": Case(_only_a_pipe),
    "deep_folders": Case(lambda made: (made.path / "/".join(["x"] * 500)).mkdir(parents=True)),
    "empty_folder": Case(lambda made: (made.path / "empty").mkdir()),
    "huge_file": _sparse("chain.jsonl", BIG),
    "huge_listing": _sparse("files", BIG),
    "long_listing": Case(lambda made: (made.path / "files").write_bytes(b"a\n" * (30 << 20))),
    "long_text": Case(lambda made: (made.path / "files").write_bytes(_LONG), UNVERIFIABLE, UNVERIFIABLE),
    "empty_listing": _sparse("files", 0),
    "empty_checkpoint": _sparse("checkpoint", 0),
    "no_signature": Case(lambda made: _with_both(made)),
    "a_false_signature_beside": Case(lambda made: _with_another(made)),
    "signature_with_return": with_note_end("\r\n"),
    "signature_with_separator": with_note_end("\u2028\n"),
    "signature_with_more": with_note_end(" more\n"),
    "signature_and_a_line": with_note_end("\nmore\n"),
    "signature_of_no_name": with_note_end("\n\u2014 a+b AAAAAAAA\n"),
    "another_key": Case(lambda made: _fresh(made, layout.FILES), UNVERIFIABLE, UNVERIFIABLE),
}  # fmt: skip

_PROOF, _HASHES = "proofs/~.tlog-proof", (b"A" * 43 + b"=\n") * 70
SIGNED: dict[str, Case] = {
    "checkpoint_of_another_key": Case(lambda made: _fresh(made, layout.CHECKPOINT), UNVERIFIABLE, UNVERIFIABLE),
    "older_format": Case(lambda made: sign(made, lambda text: text.replace("bundle/1", "bundle/0")), 15, 15),
    "newer_format": Case(lambda made: sign(made, lambda text: text.replace("bundle/1", "bundle/2")), 15, 15),
    "another_origin": with_listing(lambda text: text.replace(text.split("\n")[1], "example.org/other", 1)),
    # ---- the listing
    "size_of_20_digits": with_listing(lambda text: text.replace("\n", f"\n{2**64 - 1} {'0' * 64} checkpoint\n", 2)),
    "size_with_zeros": with_listing(lambda text: re.sub(r"(?m)^(\d+ \w+ checkpoint)$", r"0\1", text)),
    "size_of_a_million_digits": with_listing(lambda text: text + "9" * MANY + " " + "0" * 64 + " payloads/9\n"),
    "envelope_of_gigabytes": with_listing(
        lambda text: text.replace("payloads/", f"payloads/9\n{BIG} {'0' * 64} envelopes/9\n", 1)),
    "name_outside": with_listing(lambda text: text + f"1 {'0' * 64} ../escaped\n"),
    "name_absolute": with_listing(lambda text: text + f"1 {'0' * 64} /tmp/escaped\n"),
    "name_inside_outside": with_listing(lambda text: text + f"1 {'0' * 64} tile/../../escaped\n"),
    "name_of_windows": with_listing(lambda text: text + f"1 {'0' * 64} tile\\..\\escaped\n"),
    "name_twice": with_listing(lambda text: text + text.splitlines()[-1] + "\n"),
    "name_in_another_case": with_listing(lambda text: text + f"1 {'0' * 64} CHECKPOINT\n"),
    "listed_in_disorder": with_listing(_in_disorder),
    **{f"listed_{name}": Case(lambda made, name=name: ((made.path / name).write_bytes(b"x"), sign(made))) for name in (
        "README.md", "payloads/05", "payloads/5.x", "proofs/5", "proofs/5.x",
    )},
    "nothing_listed": with_listing(lambda text: "\n".join(text.split("\n")[:2]) + "\n"),
    # ---- the checkpoint
    "size_beyond_integers": with_checkpoint(lambda made, old: f"{made.origin}\n{2**64 - 1}\n{_root(old)}\n"),
    "size_007": with_checkpoint(lambda made, old: f"{made.origin}\n0{old.size}\n{_root(old)}\n"),
    "size_in_other_digits": with_checkpoint(lambda made, old: f"{made.origin}\n\u0661\u0662\n{_root(old)}\n"),
    "size_below_0": with_checkpoint(lambda made, old: f"{made.origin}\n-1\n{_root(old)}\n"),
    "size_of_many_digits": with_checkpoint(lambda made, old: f"{made.origin}\n{'9' * 300_000}\n{_root(old)}\n"),
    "size_below_an_entry": with_checkpoint(lambda made, old: f"{made.origin}\n{made.positions()[-1]}\n{_root(old)}\n"),
    "empty_tree": with_checkpoint(
        lambda made, old: f"{made.origin}\n0\n{base64.b64encode(digest.EMPTY_TREE).decode()}\n"),
    "root_too_short": with_checkpoint(lambda made, old: f"{made.origin}\n{old.size}\nAAAA\n"),
    "root_in_other_bits": with_checkpoint(lambda made, old: f"{made.origin}\n{old.size}\n{_loose(_root(old))}\n"),
    "checkpoint_of_another_log": with_checkpoint(lambda made, old: f"example.org/other\n{old.size}\n{_root(old)}\n"),
    "ten_thousand_signatures": with_changed("checkpoint", _many_signatures),
    "checkpoint_of_nothing": with_file("checkpoint", b""),
    # ---- proofs
    "proof_of_nothing": with_file("proofs/~.tlog-proof", b""),
    "proof_without_hashes": with_changed(_PROOF, lambda raw: re.sub(rb"(?s)(index \d+\n).*?\n\n", rb"\1\n", raw)),
    "proof_too_long": with_changed(_PROOF, lambda raw: raw.replace(b"\n\n", b"\n" + _HASHES + b"\n", 1)),
    "proof_in_other_bits": with_changed(_PROOF, _other_base64),
    "proof_of_another_index": with_changed(_PROOF, lambda raw: raw.replace(b"index ", b"index 0", 1)),
    "proof_with_returns": with_changed(_PROOF, lambda raw: raw.replace(b"\n", b"\r\n")),
    "proofs_swapped": swapped("proofs"),
    "proof_doubled": doubled("proofs/~.tlog-proof", "proofs/999.tlog-proof"),
    # ---- entries
    "first_entry_of_another_before": Case(_begun_elsewhere),
    "entry_of_nothing": with_file("envelopes/~", b""),
    "entries_swapped": swapped("envelopes"),
    "entry_doubled": doubled("envelopes/~", "envelopes/999"),
    "entry_too_long": with_entry(_after_type(b',"w":"' + b"x" * 16_384 + b'"')),
    "entry_too_deep": with_entry(_deep),
    "entry_with_a_key_twice": with_entry(_after_type(b',"v":1')),
    "entry_with_nan": with_entry(lambda raw: raw.replace(b'"v":1', b'"v":NaN')),
    "entry_with_a_fraction": with_entry(lambda raw: raw.replace(b'"v":1', b'"v":1.0')),
    "entry_with_an_exponent": with_entry(lambda raw: raw.replace(b'"op_index":0', b'"op_index":0e0')),
    "entry_with_infinity": with_entry(lambda raw: raw.replace(b'"op_index":0', b'"op_index":1e400')),
    "entry_with_minus_0": with_entry(lambda raw: raw.replace(b'"op_index":0', b'"op_index":-0')),
    "entry_with_many_digits": with_entry(lambda raw: raw.replace(b'"op_index":0', b'"op_index":' + b"9" * 5_000)),
    "entry_with_a_space": with_entry(lambda raw: raw.replace(b'"v":1', b'"v": 1')),
    "entry_with_a_line_behind": with_entry(lambda raw: raw + b"\n"),
    "entry_with_a_mark_before": with_entry(lambda raw: b"\xef\xbb\xbf" + raw),
    "entry_with_half_a_pair": with_entry(lambda raw: raw.replace(b'"authn":"', b'"authn":"\\ud800')),
    "entry_that_is_no_text": with_entry(lambda raw: raw.replace(b'"authn":"', b'"authn":"\xff')),
    "entry_in_another_order": with_entry(_out_of_order),
    "entry_of_another_log": with_entry(lambda raw: raw.replace(b'"log":"', b'"log":"x')),
    "entry_of_another_version": with_entry(lambda raw: raw.replace(b'"v":1', b'"v":2')),
    "entry_of_version_true": with_entry(lambda raw: raw.replace(b'"v":1', b'"v":true')),
    "entry_with_another_length": with_entry(lambda raw: re.sub(rb'("payload_len":\d+)', rb"\g<1>0", raw)),
    "entry_without_a_time": with_entry(lambda raw: raw.replace(b'Z","authn"', b'","authn"')),
    # ---- payloads and what is made of all
    "payload_of_nothing": with_file("payloads/~", b""),
    "payload_too_long": with_file("payloads/~", bytes(300_000)),
    "payload_too_deep": with_file("payloads/~", bytes(32) + b"[" * 200_000),
    "payload_doubled": doubled("payloads/~", "payloads/999"),
    "payloads_swapped": swapped("payloads"),
    "erasure_invented": with_file(
        "erasures.ndjson", b'{"seq":1,"erasure":"era_01JZ8Q0000000000000000000E","erased_by":2,"certified_by":3}\n'),
    "erasures_too_deep": with_file("erasures.ndjson", b"[" * MANY),
    "chain_too_deep": with_file("chain.jsonl", b"[" * MANY),
    "chain_of_nothing": with_file("chain.jsonl", b""),
}  # fmt: skip

PACKED: dict[str, Case] = {
    "parent": in_archive((member("../escaped"), b"x")),
    "absolute": in_archive((member("/tmp/escaped"), b"x")),
    "symbolic_link": in_archive((member("checkpoint", tarfile.SYMTYPE, "/etc/passwd"), b"")),
    "hard_link": in_archive((member("checkpoint", tarfile.LNKTYPE, "files"), b"")),
    "device": in_archive((member("checkpoint", tarfile.CHRTYPE), b"")),
    "queue": in_archive((member("checkpoint", tarfile.FIFOTYPE), b"")),
    "folder": in_archive((member("envelopes", tarfile.DIRTYPE), b"")),
    "in_another_case": in_archive((member("VERIFY.MD"), b"x")),
    "twice": Case(lambda made: packed(made, *(one for one in whole(made) for _ in "ab"))),
    "listing_twice": Case(lambda made: packed(made, (member("files"), _listing(made)), *whole(made))),
    "one_more": Case(lambda made: packed(made, *whole(made), (member("zzz"), b"x"))),
    "one_less": Case(lambda made: packed(made, *whole(made)[:-1])),
    "sparse": with_header(lambda header: header.__setitem__(slice(156, 157), b"S")),
    "long_name": with_header(lambda header: header.__setitem__(slice(156, 157), b"L")),
    "size_below_0": with_header(lambda header: header.__setitem__(slice(124, 136), b"\xff" * 12)),
    "size_in_base_256": with_header(lambda header: header.__setitem__(slice(124, 136), b"\x80" + b"\xff" * 11)),
    "size_huge": with_header(lambda header: header.__setitem__(slice(124, 136), b"77777777777\0")),
    "size_no_number": with_header(lambda header: header.__setitem__(slice(124, 136), b"x" * 12)),
    "long_text": Case(_long, UNVERIFIABLE, UNVERIFIABLE),
    "size_in_another_base": with_header(_in_base_256),
    "of_gnu": with_header(lambda header: header.__setitem__(slice(257, 265), b"ustar  \0")),
    "hidden_in_a_name": with_header(lambda header: header.__setitem__(slice(60, 66), b"hidden")),
    "hidden_in_padding": with_archive(_with_padding),
    "hidden_behind": with_archive(lambda raw: raw + b"hidden" + bytes(506)),
    "hidden_far_behind": with_archive(lambda raw: raw + bytes(20 * 512) + b"hidden"),
    "in_disorder": Case(lambda made: packed(made, *reversed(whole(made)))),
    "without_end": with_archive(_without_end),
    "gzip_cut": with_archive(lambda raw: gzip.compress(raw)[:-1]),
    "gzip_of_another_sum": with_archive(lambda raw: gzip.compress(raw)[:-8] + bytes(8)),
    "gzip_and_more": with_archive(lambda raw: gzip.compress(raw) + b"more"),
    "bomb": Case(bomb),
}  # fmt: skip


def _root(old: Checkpoint) -> str:
    return base64.b64encode(old.root).decode()


def cases() -> Iterator[tuple[str, Case]]:
    """Yield every case with its name."""
    for group, found in (("forged", FORGED), ("signed", SIGNED), ("packed", PACKED)):
        yield from ((f"{group}-{name.replace('/', '-')}", case) for name, case in found.items())


def loaded(path: Path, log: Path, key: str, signing: Path) -> Handed:
    """Return a bundle, with the log from a complete one of the same size or larger."""
    return Handed(path, log_of(log), key, keys.read_signing_key(signing))
