"""Check a Corrigenda audit bundle without Corrigenda: `python3 verify.py KEY [BUNDLE]`.

KEY is the verifier key that the issuer gave you by another way than this bundle, `<origin>+<id>+<base64>`, or @FILE.
BUNDLE is the directory (default: the one this program lies in) or a .tar or .tar.gz file. Needs Python 3.11 and the
packages `cryptography` (Ed25519) and `blake3`; uses no network and writes nothing. A program that comes with what it
checks proves nothing by itself: read it, or take it from a bundle that you trust.

Exit 0 verified, 14 tampered or malformed, 15 cannot be verified with this key, 2 usage.
"""

import base64
import gzip
import hashlib
import json
import os
import re
import sys
import tarfile
from pathlib import Path

from blake3 import blake3
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

TAMPERED, UNVERIFIABLE, USAGE = 14, 15, 2
LINK, STREAM_LINK = "corrigenda 2026 event link v1", "corrigenda 2026 stream link v1"
LIMIT = 64 * 1024 * 1024  # of the listing; every other size is signed
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")
NAME = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")
FIELDS = (
    "actor,at,authn,facts,log,op,op_count,op_index,payload_len,payload_sha256,prev_b3,request,request_fp,schema,seq,"
    "stream,stream_prev_b3,stream_seq,subjects,type,v"
)


class Stop(Exception):
    """The check has an end: an exit and why."""

    def __init__(self, exit_code, why):
        super().__init__(why)
        self.exit_code = exit_code


def tampered(why):
    raise Stop(TAMPERED, why)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


# ---------------------------------------------------------------- keys, notes, checkpoints (C2SP signed-note)


def read_key(text):
    """Return the name, the 4-byte id and the public key of a verifier key."""
    try:
        name, key_id, encoded = text.strip().split("+", 2)
        typed = base64.b64decode(encoded, validate=True)
    except ValueError:
        raise Stop(USAGE, "the key is not of the form ORIGIN+ID+BASE64") from None
    made = sha256(name.encode(), b"\n", typed)[:4]
    if len(typed) != 33 or typed[0] != 1 or key_id != made.hex():
        raise Stop(USAGE, "the key is no Ed25519 verifier key, or its id is not its own")
    return name, made, Ed25519PublicKey.from_public_bytes(typed[1:])


def open_note(raw, key, what):
    """Return the text of a note that the key signed."""
    name, key_id, public = key
    text, blank, lines = raw.decode("utf-8").rpartition("\n\n")
    if not blank or not lines.endswith("\n"):
        tampered(f"{what} is no signed note")
    text += "\n"
    for line in lines.splitlines():
        dash, signer, encoded = f"{line}  ".split(" ")[:3]
        raw_signature = base64.b64decode(encoded, validate=True)
        if (dash, signer, raw_signature[:4]) == ("\u2014", name, key_id):
            try:
                public.verify(raw_signature[4:], text.encode())
            except InvalidSignature:
                tampered(f"the signature of {what} is not the key's")
            return text
    raise Stop(UNVERIFIABLE, f"{what} was not signed by this key")


def read_directory(root):
    """Return what reads each file of a directory, by name; a link in it is refused."""
    files = {}
    for folder, folders, names in os.walk(root):
        for name in folders + names:
            path = Path(folder, name)
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                tampered(f"{path.name} is no plain file")
        for name in names:
            path = Path(folder, name)
            files[path.relative_to(root).as_posix()] = path.read_bytes
    return files


def read_tar(path, key):
    """Return the same for a tar file. Only what the signed listing names is read, and only so much of it."""
    files, sizes = {}, {"files": LIMIT}
    with path.open("rb") as raw:
        compressed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = gzip.GzipFile(fileobj=raw) if compressed else raw
        while (block := stream.read(512)) and block.strip(b"\0"):
            member = tarfile.TarInfo.frombuf(block, "ascii", "strict")
            if not member.isreg() or member.size > sizes.get(member.name, -1) or member.name in files:
                tampered("the tar file holds something that is not listed, or no plain file")
            content = stream.read(member.size)
            stream.read(-member.size % 512)
            files[member.name] = lambda content=content: content
            if member.name == "files":
                _, listed = read_listing(content, key)
                sizes = {name: size for name, (size, _) in listed.items()}
    return files


def read_listing(raw, key):
    """Return the origin of a bundle, and size and hash of each file by name, from the signed note `files`."""
    version, origin, *lines = open_note(raw, key, "files").split("\n")[:-1]
    if version != "corrigenda-bundle/1":
        raise Stop(UNVERIFIABLE, "the bundle is of a format that this program does not know")
    listed = {}
    for line in lines:
        size, digest, name = line.split(" ")
        if not NAME.fullmatch(name) or ".." in name or name in listed:
            tampered("the listing names a file that no bundle has")
        listed[name] = (int(size), digest)
    return origin, listed


# ---------------------------------------------------------------- envelopes and proofs


def unique(pairs):
    """Return the object that these pairs are; a key that comes twice is refused."""
    made = dict(pairs)
    if len(made) != len(pairs):
        tampered("an object has a key twice")
    return made


def canonical(raw):
    """Return the JSON value that the bytes say, and require that they say it in canonical form."""
    value = json.loads(raw, object_pairs_hook=unique, parse_float=tampered, parse_constant=tampered)
    if json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() != raw:
        tampered("there is JSON that is not in canonical form")
    return value


def read_envelope(raw, position, origin):
    """Return an envelope, checked as far as its own bytes go."""
    envelope = canonical(raw)
    if len(raw) > 16_384 or ",".join(sorted(envelope)) != FIELDS or envelope["v"] != 1:
        tampered(f"envelope {position} is none of this format")
    if (envelope["seq"], envelope["log"]) != (position, origin) or not TIME.fullmatch(envelope["at"]):
        tampered(f"envelope {position} is of another position, or of another log")
    return envelope


def check_inclusion(leaf, index, size, hashes, root):
    """Follow a proof of inclusion from a leaf to the root (RFC 9162, section 2.1.3.2)."""
    place, last, made = index, size - 1, leaf
    for sibling in hashes:
        if last == 0:
            tampered(f"the proof of entry {index} is too long")
        if place & 1 or place == last:
            made = sha256(b"\x01", sibling, made)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            made = sha256(b"\x01", made, sibling)
        place, last = place >> 1, last >> 1
    if last or made != root or not 0 <= index < size:
        tampered(f"entry {index} is not in the tree that was signed")


def read_proof(raw, position, checkpoint):
    """Return the hashes of a C2SP tlog-proof for this entry at this checkpoint."""
    head, _, note = raw.partition(b"\n\n")
    header, index, *encoded = head.decode("ascii").split("\n")
    if (header, index, note) != ("c2sp.org/tlog-proof@v1", f"index {position}", checkpoint):
        tampered(f"the proof of entry {position} is of something else")
    return [base64.b64decode(one, validate=True) for one in encoded]


def check(files, key):
    """Check all files of a bundle, and return what they show."""
    origin, listed = read_listing(files["files"](), key)
    if origin != key[0]:
        tampered("the bundle is of another origin than the key")
    for name in sorted(listed.keys() ^ (files.keys() - {"files"})):
        tampered(f"{name} is {'listed and missing' if name in listed else 'there and not listed'}")
    for name, (size, digest) in listed.items():
        content = files[name]()
        if (len(content), hashlib.sha256(content).hexdigest()) != (size, digest):
            tampered(f"{name} is not what was listed")
    checkpoint = files["checkpoint"]()
    signed_origin, count, encoded = open_note(checkpoint, key, "checkpoint").split("\n")[:3]
    if signed_origin != origin:
        tampered("the checkpoint is of another origin than the key")
    size, root = int(count), base64.b64decode(encoded, validate=True)
    positions = sorted(int(name.split("/")[1]) for name in listed if name.startswith("envelopes/"))
    beside = {int(name.split("/")[1].split(".")[0]) for name in listed if name.startswith(("payloads/", "proofs/"))}
    if beside - set(positions):
        tampered("there is a payload or a proof of an entry that is not there")
    given, withheld, streams = check_entries(files, positions, checkpoint, origin, size, root)
    complete = any(name.startswith("tile/entries/") for name in listed)
    if complete:
        check_log(files, listed, size, root, streams)
    counts = {name: count for name, (count, _) in streams.items()}
    shown = {"origin": origin, "size": size, "root": root.hex(), "events": len(positions), "streams": counts}
    return shown | {"payloads_given": given, "payloads_withheld": withheld, "nothing_missing": complete}


def check_entries(files, positions, checkpoint, origin, size, root):
    """Check each entry: form, place in the tree, links, payload."""
    given = withheld = 0
    streams, before = {}, None
    for position in positions:
        raw = files[f"envelopes/{position}"]()
        envelope = read_envelope(raw, position, origin)
        hashes = read_proof(files[f"proofs/{position}.tlog-proof"](), position, checkpoint)
        check_inclusion(sha256(b"\0", raw), position, size, hashes, root)
        if before and before[0] + 1 == position and envelope["prev_b3"] != before[1]:
            tampered(f"entry {position} is not linked to the one before it")
        count, last = streams.get(envelope["stream"], (0, "0" * 64))
        if (envelope["stream_seq"], envelope["stream_prev_b3"]) != (count, last):
            tampered(f"entry {position} is not the next one of its stream")
        streams[envelope["stream"]] = (count + 1, blake3(raw, derive_key_context=STREAM_LINK).hexdigest())
        before = (position, blake3(raw, derive_key_context=LINK).hexdigest())
        revealed = files.get(f"payloads/{position}")
        if revealed is not None:
            content = revealed()
            if hashlib.sha256(content).hexdigest() != envelope["payload_sha256"]:
                tampered(f"payload {position} is not the one that its entry committed to")
            canonical(content[32:])
            given += 1
        elif envelope["payload_sha256"] is not None:
            withheld += 1
    return given, withheld, streams


def check_log(files, listed, size, root, streams):
    """Check a complete log: its entries make the signed tree, and hold no further event of the streams."""
    peaks, counts, position = [], dict.fromkeys(streams, 0), 0
    for name in sorted((name for name in listed if name.startswith("tile/entries/")), key=tile_number):
        content = files[name]()
        while content:
            length = 2 + int.from_bytes(content[:2], "big")
            raw, content = content[2:length], content[length:]
            peak, width = sha256(b"\0", raw), 1
            while peaks and peaks[-1][1] == width:
                peak, width = sha256(b"\x01", peaks.pop()[0], peak), 2 * width
            peaks.append((peak, width))
            stream, position = canonical(raw)["stream"], position + 1
            if stream in counts:
                counts[stream] += 1
    made, _ = peaks.pop()
    while peaks:
        made = sha256(b"\x01", peaks.pop()[0], made)
    if (position, made) != (size, root) or any(counts[name] != streams[name][0] for name in streams):
        tampered("the log's entries are not those that were signed, or the bundle leaves some of a stream out")


def tile_number(name):
    """Return the number of a tile: `tile/entries/x001/234.p/5` is number 1234."""
    return int("".join(re.findall("[0-9]{3}", name.split(".p/")[0])))


def main(arguments):
    """Check the bundle that is named, print what it shows, and return the exit."""
    try:
        if len(arguments) not in (1, 2):
            raise Stop(USAGE, "usage: python3 verify.py KEY|@FILE [BUNDLE]")
        text = arguments[0]
        key = read_key(Path(text[1:]).read_text("utf-8") if text.startswith("@") else text)
        path = Path(arguments[1]) if len(arguments) == 2 else Path(__file__).parent
        shown = check(read_directory(path) if path.is_dir() else read_tar(path, key), key)
    except Stop as stop:
        print(f"{'TAMPERED' if stop.exit_code == TAMPERED else 'NOT VERIFIED'}: {stop}")
        return stop.exit_code
    except OSError as error:
        print(f"NOT VERIFIED: {error}")
        return USAGE
    except Exception as error:  # a hostile file may break any assumption, and then it is none of ours
        print(f"TAMPERED: malformed ({type(error).__name__})")
        return TAMPERED
    print("verified" + (", with payloads withheld" if shown["payloads_withheld"] else ""))
    print(json.dumps(shown, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
