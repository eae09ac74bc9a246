"""What may be said of evidence."""

from typing import Annotated

from pydantic import Field

from gateway.shapes.fields import MediaType, PublicHash, Text, Uri
from gateway.shapes.requests.base import Request
from ledger import limits


class EvidenceRequest(Request):
    """Evidence by its hash; where it lies, if elsewhere; and what it is."""

    hash: PublicHash
    uri: Uri | None = None
    media_type: MediaType | None = None
    name: Annotated[Text, Field(min_length=1, max_length=limits.NAME_CHARS_MAX)] | None = None
