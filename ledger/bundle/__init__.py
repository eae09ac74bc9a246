"""Bundles: a chain of events with the proofs that it is in a signed log, for whoever has neither database nor network.

BUNDLE.md is the specification. `writing` makes one, `checking` holds one against a key, `layout` and `chain` say what
lies in it, `source` reads it as something that an enemy may have made.
"""

from ledger.bundle.checking import verify_bundle
from ledger.bundle.findings import BundleReport, Finding, Stream

__all__ = ["BundleReport", "Finding", "Stream", "verify_bundle"]
