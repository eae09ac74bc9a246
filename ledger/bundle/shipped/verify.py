"""Check a Corrigenda audit bundle without Corrigenda: `python3 verify.py KEY [BUNDLE]`.

KEY is the verifier key that the issuer gave you by another way than this bundle, `<origin>+<id>+<base64>`, or @FILE.
BUNDLE is the directory (default: the one this program lies in), or a .tar or .tar.gz file, which it holds in memory.
Needs Python 3.11, `cryptography`, `blake3`; uses no network, writes nothing. It came with what it checks: read it.
Exit 0 verified, 14 tampered or malformed, 15 cannot be verified with this key, 2 usage.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import re
import sys
import tarfile
from functools import partial, reduce
from pathlib import Path

from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

TAMPERED, UNVERIFIABLE, USAGE = 14, 15, 2
LIMIT = 65 * 1024 * 1024  # of the listing and of a tile: no file that is read at once has more
LINE = r"N [0-9a-f]{64} ((envelopes|payloads)/N|proofs/N\.tlog-proof|tile/(entries|payloads|\d\d?)/[0-9x/]+(\.p/\d+)?|"
LINE += r"checkpoint|chain\.jsonl|erasures\.ndjson|report\.json|VERIFY\.md|verify\.py|viewer\.html)"
FIELDS = "actor,at,authn,facts,log,op,op_count,op_index,payload_len,payload_sha256,prev_b3,request,request_fp,schema,"
FIELDS += "seq,stream,stream_prev_b3,stream_seq,subjects,type,v"
CANONICAL = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False}


class Stop(Exception):
    """The check has an end: an exit, and why."""


def tampered(why, code=TAMPERED):
    raise Stop(code, why)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def unbase64(text):
    raw = base64.b64decode(text, validate=True)
    return raw if base64.b64encode(raw).decode() == text else tampered("there is base64 in another spelling")


def read_key(text):
    """Return the name, the 4-byte id and the public key of a verifier key."""
    try:
        name, key_id, encoded = text.strip().split("+", 2)
        typed = base64.b64decode(encoded, validate=True)
        made = sha256(name.encode(), b"\n", typed)[:4]
        if (typed[:1], made.hex()) != (b"\1", key_id):
            raise ValueError
        return name, made, Ed25519PublicKey.from_public_bytes(typed[1:])
    except ValueError:
        raise Stop(USAGE, "the key is no Ed25519 key of the form ORIGIN+ID+BASE64, or its id is not its own") from None


def open_note(raw, key, what):
    """Return the text of a note that the key signed, each time that its name is under it."""
    name, key_id, public = key
    text, _, lines = raw.rpartition(b"\n\n")
    shape = "(\u2014 [^\\s+\0-\x1f]+ [0-9A-Za-z+/]{7,}={0,2}\n){1,100}"
    if not text or len(lines) > 1_000_000 or not re.fullmatch(shape, lines.decode("utf-8")):
        tampered(f"{what} is no signed note")
    signed = [(signer, unbase64(encoded)) for _, signer, encoded in map(str.split, lines.decode("utf-8").splitlines())]
    mine = [public.verify(one[4:], text + b"\n") for signer, one in signed if (signer, one[:4]) == (name, key_id)]
    return text.decode("utf-8") + "\n" if mine else tampered(f"{what} was not signed by this key", UNVERIFIABLE)


def read_directory(root):
    """Return what opens each file of a directory, by name; a link in it is refused, and a folder of nothing."""
    for path in (paths := [*root.rglob("*")]):
        if path.is_symlink() or not (path.is_file() or (path.is_dir() and any(path.iterdir()))):
            tampered(f"{path.name} is no plain file, or an empty folder")
    return {path.relative_to(root).as_posix(): partial(path.open, "rb") for path in paths if path.is_file()}


def read_tar(path, key):
    """Return the same for a tar file: the signed listing, what that names, in its order, and nothing else."""
    files, sizes, names = {}, {"files": LIMIT}, ["files"]
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as raw:
        stream = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
        for name in names:
            size = tarfile.TarInfo.frombuf(block := stream.read(512), "ascii", "strict").size
            plain = block[:100].rstrip(b"\0") + block[156:157] + block[257:265] + block[345:500].strip(b"\0")
            files[name] = partial(io.BytesIO, stream.read(size if 0 <= size <= sizes[name] else 0))
            plain += stream.read(-size % 512).strip(b"\0")
            if plain != name.encode() + b"0ustar\x0000" or block[124] > 127:
                tampered("the tar file holds something that is not listed, or not there, or no plain file")
            if name == "files":
                sizes = {name: size for name, (size, _) in read_listing(read(files, "files"), key)[1].items()}
                names += sizes
                if sum(sizes.values()) > 100 * path.stat().st_size + LIMIT:
                    tampered("the tar file would become far larger than it is")
        end = stream.read(22 * 512)
    return files if 2 <= len(end) / 512 <= 21 and not end.strip(b"\0") else tampered("the tar file does not end there")


def read_listing(raw, key):
    """Return the origin of a bundle, and size and hash of each file by name, from the signed note `files`."""
    version, origin, *lines = open_note(raw, key, "files").split("\n")[:-1]
    if version != "corrigenda-bundle/1":
        raise Stop(UNVERIFIABLE, "the bundle is of a format that this program does not know")
    listed = {name: (int(size), digest) for size, digest, name in (line.split(" ") for line in lines)}
    shape = LINE.replace("N", "(0|[1-9][0-9]{0,15})")
    if [*listed] != sorted(listed) or len(listed) != len(lines) or not all(re.fullmatch(shape, one) for one in lines):
        tampered("the listing is not a size, a hash and a name that a bundle has, in order and each once")
    return origin, listed


def canonical(raw):
    """Return the JSON value that the bytes say, and require that they say it in canonical form: no key comes twice."""
    value = json.loads(raw, parse_float=tampered, parse_constant=tampered)
    return value if json.dumps(value, **CANONICAL).encode() == raw else tampered("there is JSON in no canonical form")


def read_envelope(raw, position, origin):
    """Return an envelope, checked as far as its own bytes go."""
    envelope = canonical(raw) if len(raw) <= 16_384 else {}
    said = repr([",".join(sorted(envelope)), *map(envelope.get, ("seq", "log", "v"))])  # 1 and true differ
    if said != repr([FIELDS, position, origin, 1]) or not re.fullmatch(r"[0-9-]+T[0-9:]+\.[0-9]{6}Z", envelope["at"]):
        tampered(f"envelope {position} is none of this format, or of another position or log")
    return envelope


def root_over(leaf, index, size, path):
    """Return the root of a tree of this size, from a leaf and the hashes beside its way up (RFC 6962, 2.1.1)."""
    if size == 1:
        return tampered("a proof is too long") if path else leaf
    split, path, sibling = 1 << ((size - 1).bit_length() - 1), path[:-1], path[-1]
    if index < split:
        return sha256(b"\x01", root_over(leaf, index, split, path), sibling)
    return sha256(b"\x01", sibling, root_over(leaf, index - split, size - split, path))


def read(files, name):
    with files[name]() as file:
        return file.read(LIMIT)


def single_entries(files, checkpoint, size, root):
    """Yield position, envelope and payload of each entry in a file of its own, by a C2SP tlog-proof in the tree."""
    positions = sorted(int(name[10:]) for name in files if name.startswith("envelopes/"))
    if {int(re.findall("[0-9]+", name)[0]) for name in files if name[:3] in ("pay", "pro")} - set(positions):
        tampered("there is a payload or a proof of an entry that is not there")
    for position in positions:
        raw, name = read(files, f"envelopes/{position}"), f"payloads/{position}"
        head, _, note = read(files, f"proofs/{position}.tlog-proof").partition(b"\n\n")
        header, index, *encoded = head.decode("ascii").split("\n")
        if (header, index, note) != ("c2sp.org/tlog-proof@v1", f"index {position}", checkpoint) or position >= size:
            tampered(f"the proof of entry {position} is of something else")
        if root_over(sha256(b"\0", raw), position, size, [*map(unbase64, encoded)]) != root:
            tampered(f"entry {position} is not in the tree that was signed")
        yield position, raw, read(files, name) if name in files else None


def read_tile(files, kind, number, width, length_bytes):
    """Return the records of a tile, each of which stands after its length."""
    *above, last = (group.zfill(3) for group in f"{number:,}".split(","))
    name = "/".join(["tile", kind, *(f"x{group}" for group in above), last]) + (f".p/{width}" if width < 256 else "")
    content, found, at = read(files, name), [], 0
    while at < len(content):
        begin, at = at + length_bytes, at + length_bytes + int.from_bytes(content[at : at + length_bytes])
        found.append(content[begin:at])
    return found if (len(found), at) == (width, len(content)) else tampered(f"{name} is no such tile")


def log_entries(files, size, root, tiled):
    """Yield the same of a whole log, whose entries have to make the signed tree; if it is tiled, payloads are, too."""
    peaks, kinds = [], (("entries", 2), ("payloads", 4))[: 1 + tiled]
    if any(sum(name.startswith(f"tile/{kind}/") for name in files) != -(-size // 256) for kind, _ in kinds):
        tampered("there are more tiles, or fewer, than a log of this size has")
    for first in range(0, size, 256):
        records = (read_tile(files, kind, first // 256, min(256, size - first), length) for kind, length in kinds)
        for position, (raw, *content) in enumerate(zip(*records, strict=True), first):
            peak, place = sha256(b"\0", raw), position
            while place & 1:
                peak, place = sha256(b"\x01", peaks.pop(), peak), place >> 1
            peaks.append(peak)
            name = f"payloads/{position}"
            yield position, raw, read(files, name) if name in files else b"".join(content) or None
    if reduce(lambda right, left: sha256(b"\x01", left, right), peaks[::-1]) != root:
        tampered("the log's entries are not those that were signed")


def check(files, key):
    """Check all files of a bundle, and return what they show."""
    origin, listed = read_listing(read(files, "files"), key)
    for name in sorted(listed.keys() ^ (files.keys() - {"files"})):
        tampered(f"{name} is {'listed and missing' if name in listed else 'there and not listed'}")
    for name, (size, digest) in listed.items():
        with files[name]() as file:
            if file.seek(0, 2) != size or file.seek(0) or hashlib.file_digest(file, "sha256").hexdigest() != digest:
                tampered(f"{name} is not what was listed")
    signed_origin, count, encoded, _ = open_note(checkpoint := read(files, "checkpoint"), key, "checkpoint").split("\n")
    size, root = int(count), unbase64(encoded)
    if not signed_origin == origin == key[0] or str(size) != count:
        tampered("the bundle or its checkpoint is of another origin than the key, or of no size")
    tiled, complete, single = (any(n.startswith(begin) for n in files) for begin in ("tile/p", "tile/", ("en", "p")))
    if tiled == single:
        tampered("there are entries in tiles, and beside them entries in files of their own; or there are neither")
    entries = log_entries(files, size, root, tiled) if complete else single_entries(files, checkpoint, size, root)
    with files["chain.jsonl"]() as chain:
        seqs = (json.loads(line)["seq"] for line in iter(partial(chain.readline, 400_000), b""))
        counts, told, certificates = check_entries(entries, seqs, origin, files, tiled)
    payloads = check_erasures(files, told, certificates, key)
    if single and complete and sum(counts.values()) != sum(1 for _ in single_entries(files, checkpoint, size, root)):
        tampered("chain.jsonl has a line of an event that has no file of its own")
    shown = {"origin": origin, "size": size, "root": root.hex(), "events": sum(counts.values())}
    shown |= {"streams": counts if len(counts) <= 1000 else len(counts), "nothing_missing": complete}
    return shown | {f"payloads_{what}": count for what, count in payloads.items()}


def check_entries(entries, seqs, origin, files, tiled):
    """Check each entry, told by a line or not. Return how long streams are, payloads, and what is of erasures."""
    told, erasures, streams, after = {"given": set(), "missing": set()}, [], {}, next(seqs, None)
    links = {-1: "0" * 64}
    for position, raw, content in entries:
        envelope = read_envelope(raw, position, origin)
        if links.get(position - 1, envelope["prev_b3"]) != envelope["prev_b3"]:
            tampered(f"entry {position} is not linked to the one before it")
        links = {position: blake3(raw, derive_key_context="corrigenda 2026 event link v1").hexdigest()}
        is_here = tiled or f"envelopes/{position}" in files
        erasures += [envelope] if is_here and envelope["type"] in ("payload.erased.v1", "erasure.certified.v1") else []
        count, last = streams.get(envelope["stream"], (0, "0" * 64))
        if after != position:
            if count or content is not None or (is_here and not tiled):
                tampered(f"chain.jsonl has no line of entry {position}, where one has to be")
            continue
        if repr((envelope["stream_seq"], envelope["stream_prev_b3"])) != repr((count, last)):
            tampered(f"entry {position} is not the next one of its stream")
        last = blake3(raw, derive_key_context="corrigenda 2026 stream link v1").hexdigest()
        streams[envelope["stream"]] = (count + 1, last)
        committed = (envelope["payload_sha256"], envelope["payload_len"])
        if content is not None and (sha256(content).hex(), len(content) - 32) != committed:
            tampered(f"payload {position} is not the one that its entry committed to")
        if envelope["payload_sha256"] is not None:
            told["missing" if content is None else "given"].add(position)
        canonical(content[32:] if content else b"null")
        after = next(seqs, None)
    if after is not None or not streams:
        tampered("chain.jsonl has a line of no entry, or none at all")
    return {stream: count for stream, (count, _) in streams.items()}, told, erasures


def check_erasures(files, told, erasures, key):
    """Check that what is listed as erased is what signed certificates say, and count what became of the payloads."""
    certified, gone = {one["stream"]: one["seq"] for one in erasures[::-1] if is_certificate(one, key)}, {}
    for one in erasures:
        by, of = one["seq"], one["facts"].get("erasure")
        for position in one["facts"]["positions"] if certified.get(of, -1) > by else ():
            if position < by and position not in gone:
                gone[position] = {"seq": position, "erasure": of, "erased_by": by, "certified_by": certified[of]}
    if gone.keys() & told["given"]:
        tampered("a payload is given, and a certificate says that it was erased")
    erased = sorted(gone.keys() & told["missing"])
    lines = "".join(json.dumps(gone[position], separators=(",", ":")) + "\n" for position in erased)
    if read(files, "erasures.ndjson") != lines.encode():
        tampered("erasures.ndjson lists other payloads than those that certificates say were erased")
    return {"given": len(told["given"]), "withheld": len(told["missing"]) - len(erased), "erased": len(erased)}


def is_certificate(envelope, key):
    """Report whether the key signed a certificate of erasure (FORMAT.md, section 7.1)."""
    said = {name: value for name, value in envelope["facts"].items() if name != "signature"}
    text = "\n".join(("corrigenda-erasure/1", key[0], envelope["stream"], json.dumps(said, **CANONICAL)))
    note = f"{text}\n\n\u2014 {key[0]} {envelope['facts'].get('signature')}\n"
    try:
        return envelope["type"] == "erasure.certified.v1" and bool(open_note(note.encode(), key, "a certificate"))
    except Exception:  # whatever is wrong with it, it is no certificate
        return False


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
