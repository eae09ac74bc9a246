"""Bundles checked for whoever got one: no database, no home, nothing but the bundle and a key."""

from pathlib import Path

import msgspec

from gateway.shapes.replies.audit import BundleVerification
from ledger import bundle, notes
from ledger.bundle.checking import Progress
from ledger.errors import refuse
from ledger.notes import NotANote, VerifierKey

KEY_CHARS_MAX = 2_000


def verify_bundle(
    path: str | Path, key: str, *, origin: str | None = None, progress: Progress | None = None
) -> BundleVerification:
    """Check a bundle with its issuer's verifier key, `<origin>+<id>+<base64>`, which came by another way than it.

    `progress` is told how much was checked, and how much there is. Errors: VALIDATION_FAILED (the key is none, or there
    is nothing to read at the path). What is wrong with the bundle is in the answer: `ok`, and an `exit_code` of 14
    (tampered) or 15 (this key cannot verify it).
    """
    if not isinstance(key, str) or not isinstance(path, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance] - a caller's mistake
        refuse("VALIDATION_FAILED", "A bundle is named by a path, and its key is a text. Give these.")
    if origin == "":
        refuse("VALIDATION_FAILED", "The origin that was asked for is empty. Give the log's name, or leave it out.")
    known = verifier_key(key)
    try:
        report = bundle.verify_bundle(Path(path).expanduser(), known, origin=origin, progress=progress)
    except OSError as error:
        refuse(
            "VALIDATION_FAILED",
            f"A bundle was expected at {path}, and it cannot be read: {error.strerror or error}.",
            fields=[{"field": "bundle", "problem": "cannot be read"}],
        )
    return msgspec.convert(msgspec.to_builtins(report), BundleVerification)


def verifier_key(key: str) -> VerifierKey:
    """Return the verifier key that a text is. Errors: VALIDATION_FAILED."""
    try:
        return notes.parse_verifier_key(key[:KEY_CHARS_MAX].strip())
    except NotANote as error:
        refuse(
            "VALIDATION_FAILED",
            f"A verifier key was expected, as `corrigenda keys export-public` prints it, and {error}. Get it from the "
            "issuer again, by another way than the bundle.",
            fields=[{"field": "key", "problem": str(error)}],
        )
