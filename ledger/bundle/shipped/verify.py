"""Check a Corrigenda audit bundle without Corrigenda: `python3 verify.py KEY [BUNDLE]`.

KEY is the verifier key that the issuer gave you by another way than this bundle, `<origin>+<id>+<base64>`, or @FILE.
BUNDLE is the directory (default: the one this program lies in) or a .tar or .tar.gz file. Needs Python 3.11 and the
packages `cryptography` and `blake3`; uses no network and writes nothing. It came with what it checks: read it first.
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
from functools import partial
from pathlib import Path

from blake3 import blake3
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

TAMPERED, UNVERIFIABLE, USAGE = 14, 15, 2
LINK, STREAM_LINK = "corrigenda 2026 event link v1", "corrigenda 2026 stream link v1"
LIMIT = 64 * 1024 * 1024  # of the listing; every other size is signed
NAME = re.compile(r"(envelopes|payloads|proofs|tile)/[0-9a-z/.-]+|[a-z]+\.(jsonl?|ndjson|html|py)|checkpoint|VERIFY.md")
FIELDS = (
    "actor,at,authn,facts,log,op,op_count,op_index,payload_len,payload_sha256,prev_b3,request,request_fp,schema,seq,"
    "stream,stream_prev_b3,stream_seq,subjects,type,v"
)
CANONICAL = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False}


class Stop(Exception):
    """The check has an end: an exit, and why."""


def tampered(why):
    raise Stop(TAMPERED, why)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def number(text):
    return int(text) if re.fullmatch("0|[1-9][0-9]{0,15}", text) else tampered("there is a number in another spelling")


def unbase64(text):
    raw = base64.b64decode(text, validate=True)
    return raw if base64.b64encode(raw).decode() == text else tampered("there is base64 in another spelling")


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
    end = raw.rfind(b"\n\n")
    text, lines = raw[: end + 1], raw[end + 2 :]
    if end < 0 or not lines.endswith(b"\n") or lines.count(b"\n") > 100:
        tampered(f"{what} is no signed note")
    for line in lines.decode("utf-8").splitlines():
        dash, signer, encoded = f"{line}  ".split(" ")[:3]
        raw_signature = unbase64(encoded)
        if (dash, signer, raw_signature[:4]) == ("\u2014", name, key_id):
            public.verify(raw_signature[4:], text)
            return text.decode("utf-8")
    raise Stop(UNVERIFIABLE, f"{what} was not signed by this key")


def read_file(path, limit=LIMIT):
    with path.open("rb") as file:
        return file.read(limit + 1)


def read_directory(root):
    """Return what reads each file of a directory, by name; a link in it is refused."""
    files = {}
    for folder, folders, names in os.walk(root):
        for path in (Path(folder, name) for name in folders + names):
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                tampered(f"{path.name} is no plain file")
            if path.is_file():
                files[path.relative_to(root).as_posix()] = partial(read_file, path)
    return files


def read_tar(path, key):
    """Return the same for a tar file. Only what the signed listing names is read, and only so much of it."""
    files, sizes = {}, {"files": LIMIT}
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as raw:
        stream = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
        while (block := stream.read(512)) and block.strip(b"\0"):
            head = tarfile.TarInfo.frombuf(block, "ascii", "strict")
            if head.type != tarfile.REGTYPE or head.name in files or not 0 <= head.size <= sizes.get(head.name, -1):
                tampered("the tar file holds something that is not listed, or no plain file")
            content = stream.read(head.size + -head.size % 512)[: head.size]
            files[head.name] = lambda limit=0, content=content: content
            if head.name == "files":
                sizes = {name: size for name, (size, _) in read_listing(content, key)[1].items()}
                if sum(sizes.values()) > 100 * path.stat().st_size + LIMIT:
                    tampered("the tar file would become far larger than it is")
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
        listed[name] = (number(size), digest)
    return origin, listed


def canonical(raw):
    """Return the JSON value that the bytes say, and require that they say it in canonical form: no key comes twice."""
    value = json.loads(raw, parse_float=tampered, parse_constant=tampered)
    if json.dumps(value, **CANONICAL).encode() != raw:
        tampered("there is JSON that is not in canonical form")
    return value


def read_envelope(raw, position, origin):
    """Return an envelope, checked as far as its own bytes go."""
    envelope = canonical(raw) if len(raw) <= 16_384 else {}
    named = [envelope.get(name) for name in ("seq", "log", "v")]
    if ",".join(sorted(envelope)) != FIELDS or named != [position, origin, 1]:
        tampered(f"envelope {position} is none of this format, or of another position or log")
    at = re.fullmatch(r"[0-9-]{10}T[0-9:]{8}\.[0-9]{6}Z", envelope["at"])
    return envelope if at else tampered(f"envelope {position} has no time")


def check_inclusion(envelope, index, raw, checkpoint, size, root):
    """Follow a C2SP tlog-proof of this entry at this checkpoint from leaf to root (RFC 9162, section 2.1.3.2)."""
    head, _, note = raw.partition(b"\n\n")
    header, named, *encoded = head.decode("ascii").split("\n")
    if (header, named, note) != ("c2sp.org/tlog-proof@v1", f"index {index}", checkpoint):
        tampered(f"the proof of entry {index} is of something else")
    place, last, made = index, size - 1, sha256(b"\0", envelope)
    for sibling in map(unbase64, encoded):
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


def check(files, key):
    """Check all files of a bundle, and return what they show."""
    origin, listed = read_listing(files["files"](), key)
    for name in sorted(listed.keys() ^ (files.keys() - {"files"})):
        tampered(f"{name} is {'listed and missing' if name in listed else 'there and not listed'}")
    for name, (size, digest) in listed.items():
        content = files[name](size)
        if (len(content), hashlib.sha256(content).hexdigest()) != (size, digest):
            tampered(f"{name} is not what was listed")
    checkpoint = files["checkpoint"]()
    signed_origin, count, encoded = open_note(checkpoint, key, "checkpoint").split("\n")[:3]
    if not signed_origin == origin == key[0]:
        tampered("the bundle or its checkpoint is of another origin than the key")
    size, root = number(count), unbase64(encoded)
    positions = sorted(int(name[10:]) for name in listed if name.startswith("envelopes/")) or tampered("no entry")
    if {int(re.findall("[0-9]+", name)[0]) for name in listed if name[:3] in ("pay", "pro")} - set(positions):
        tampered("there is a payload or a proof of an entry that is not there")
    streams, told, certificates = check_entries(files, positions, checkpoint, origin, size, root)
    erased = check_erasures(files, told, certificates, key)
    if complete := any(name.startswith("tile/entries/") for name in listed):
        check_log(files, listed, size, root, streams)
    counts = {name: count for name, (count, _) in streams.items()}
    shown = {"origin": origin, "size": size, "root": root.hex(), "events": len(positions), "streams": counts}
    shown |= {"payloads_given": len(told["given"]), "payloads_withheld": len(told["missing"]) - erased}
    return shown | {"payloads_erased": erased, "nothing_missing": complete}


def check_entries(files, positions, checkpoint, origin, size, root):
    """Check each entry: form, place in the tree, links, payload. Return streams, payloads, and what is of erasures."""
    told, erasures, streams, before = {"given": set(), "missing": set()}, [], {}, None
    for position in positions:
        raw = files[f"envelopes/{position}"]()
        envelope = read_envelope(raw, position, origin)
        check_inclusion(raw, position, files[f"proofs/{position}.tlog-proof"](), checkpoint, size, root)
        if before and before[0] + 1 == position and envelope["prev_b3"] != before[1]:
            tampered(f"entry {position} is not linked to the one before it")
        count, last = streams.get(envelope["stream"], (0, "0" * 64))
        if (envelope["stream_seq"], envelope["stream_prev_b3"]) != (count, last):
            tampered(f"entry {position} is not the next one of its stream")
        streams[envelope["stream"]] = (count + 1, blake3(raw, derive_key_context=STREAM_LINK).hexdigest())
        before = (position, blake3(raw, derive_key_context=LINK).hexdigest())
        if f"payloads/{position}" in files:
            content = files[f"payloads/{position}"]()
            if hashlib.sha256(content).hexdigest() != envelope["payload_sha256"]:
                tampered(f"payload {position} is not the one that its entry committed to")
            canonical(content[32:])
            told["given"].add(position)
        elif envelope["payload_sha256"] is not None:
            told["missing"].add(position)
        if envelope["type"] in ("payload.erased.v1", "erasure.certified.v1"):
            erasures.append(envelope)
    return streams, told, erasures


def check_erasures(files, told, erasures, key):
    """Check that what is listed as erased is what signed certificates say, and return how many payloads that is."""
    certified = [one for one in reversed(erasures) if one["type"] == "erasure.certified.v1"]
    certificates, gone = {one["stream"]: one["seq"] for one in certified if is_certificate(one, key)}, {}
    for one in erasures:
        erasure = one["facts"].get("erasure")
        if certificates.get(erasure, -1) > one["seq"]:
            for position in (position for position in one["facts"]["positions"] if position < one["seq"]):
                row = {"seq": position, "erasure": erasure, "erased_by": one["seq"]}
                gone.setdefault(position, row | {"certified_by": certificates[erasure]})
    if gone.keys() & told["given"]:
        tampered("a payload is given, and a certificate says that it was erased")
    rows = [gone[position] for position in sorted(gone.keys() & told["missing"])]
    if files["erasures.ndjson"]() != b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows):
        tampered("erasures.ndjson lists other payloads than those that certificates say were erased")
    return len(rows)


def is_certificate(envelope, key):
    """Report whether the key signed a certificate of erasure (FORMAT.md, section 7.1)."""
    said = {name: value for name, value in envelope["facts"].items() if name != "signature"}
    text = "\n".join(("corrigenda-erasure/1", key[0], envelope["stream"], json.dumps(said, **CANONICAL)))
    note = f"{text}\n\n\u2014 {key[0]} {envelope['facts']['signature']}\n"
    try:
        return bool(open_note(note.encode(), key, "a certificate"))
    except (Stop, ValueError, InvalidSignature):
        return False


def check_log(files, listed, size, root, streams):
    """Check a complete log: its entries make the signed tree, and hold no further event of the streams."""
    peaks, counts, position = [], dict.fromkeys(streams, 0), 0
    tiles = [name.split(".p/")[0] for name in listed if name.startswith("tile/entries/")]
    for name in sorted(tiles, key=lambda name: int("".join(re.findall("[0-9]{3}", name)))):
        content = files[name if name in files else f"{name}.p/{size % 256}"]()
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


def main(arguments):
    """Check the bundle that is named, print what it shows, and return the exit."""
    try:
        if len(arguments) not in (1, 2):
            raise Stop(USAGE, "usage: python3 verify.py KEY|@FILE [BUNDLE]")
        key = read_key(Path(arguments[0][1:]).read_text("utf-8") if arguments[0].startswith("@") else arguments[0])
        path = Path(arguments[1]) if len(arguments) == 2 else Path(__file__).parent
        shown = check(read_directory(path) if path.is_dir() else read_tar(path, key), key)
    except Exception as error:  # a hostile file may break any assumption, and then it is none of ours
        code, why = error.args if isinstance(error, Stop) else (TAMPERED, f"malformed ({type(error).__name__})")
        if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
            code, why = USAGE, error
        print(f"{'TAMPERED' if code == TAMPERED else 'NOT VERIFIED'}: {why}")
        return code
    withheld = ", with payloads withheld" if shown["payloads_withheld"] else ""
    print(f"verified{withheld}" + (", with payloads erased with certificate" if shown["payloads_erased"] else ""))
    print(json.dumps(shown, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
