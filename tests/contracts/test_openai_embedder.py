"""What the embedder behind an endpoint does when the endpoint misbehaves: each fault before and after its work.

A fault that passes is got over, and the vectors are those of a good day; one that lasts is refused by name.
"""

import json
import logging
import ssl
import time
from collections.abc import Iterator
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path

import msgspec
import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ledger.clock import system_clock
from ledger.errors import InvalidInputError
from projections.embedders import load
from projections.embedders.endpoint import endpoint as make_endpoint
from projections.embedders.openai import Limits, OpenAiEmbedder
from projections.embedders.patience import at_most
from tests import endpoint as faults
from tests.endpoint import Endpoint, Fault, serving
from tests.house import WORDS, refused

KEY = "sk-QX-4411-ZULU"
TEXTS = ["the first text", "a second one", "and the third"]
QUICK = Limits(attempts=3, backoff_s=0.01, retry_after_s_max=0.5, answer_s=0.5, total_s=4.0)


@pytest.fixture
def there() -> Iterator[Endpoint]:
    with serving() as endpoint:
        yield endpoint


def made(there: Endpoint, limits: Limits = QUICK, *, dimension: int | None = None, **changes: int) -> OpenAiEmbedder:
    target = msgspec.structs.replace(make_endpoint(there.url, "/embeddings", lambda: KEY), **changes)
    return OpenAiEmbedder(target, model="words", dimension=dimension, limits=limits)


PASSING = {
    "closed before": faults.before,
    "closed amid the answer": faults.amid,
    "hangs before": faults.hang,
    "hangs after": faults.hang_after,
    "trickles": faults.trickle,
    "too many requests": faults.status(429, Retry_After="0.01"),
    "server error": faults.status(500),
    "unavailable": faults.status(503),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_fault_that_passes_is_got_over(there: Endpoint, fault: Fault) -> None:
    """Whether the server had made the vectors or not: the next attempt's are taken, and they are right."""
    there.faults = [fault, fault]
    assert made(there).embed(TEXTS) == pytest.approx(WORDS.embed(TEXTS), abs=1e-6)
    assert len(there.asked) == 3


LASTING: dict[str, tuple[Fault, str, int]] = {
    "closed before": (faults.before, "broken_off", 3),
    "closed amid the answer": (faults.amid, "broken_off", 3),
    "hangs before": (faults.hang, "timeout", 3),
    "hangs after": (faults.hang_after, "timeout", 3),
    "trickles": (faults.trickle, "timeout", 3),
    "too many requests": (faults.status(429), "status", 3),
    "server error": (faults.status(500), "status", 3),
    "bad request": (faults.status(400), "rejected", 1),
    "wrong key": (faults.status(401), "unauthorised", 1),
    "unknown model": (faults.status(404), "not_found", 1),
    "html": (faults.page, "not_json", 1),
    "half a document": (faults.raw(b'{"data": ['), "not_json", 1),
    "nested too deeply": (faults.raw(b"[" * 200_000), "not_json", 1),
    "not utf-8": (faults.raw(b"\xff\xfe{"), "not_json", 1),
    "an error with status 200": (faults.document({"error": "no"}), "malformed", 1),
    "a bare list": (faults.document([[1.0, 2.0]]), "malformed", 1),
    "rows without vectors": (faults.document({"data": [{"index": 0}] * 3}), "malformed", 1),
    "numbers as texts": (faults.words, "malformed", 1),
    "one index for all": (faults.twice, "malformed", 1),
    "fewer vectors": (faults.fewer, "wrong_count", 1),
    "more vectors": (faults.more, "wrong_count", 1),
    "rows of unlike lengths": (faults.ragged, "wrong_dimension", 1),
    "empty rows": (faults.empty_rows, "wrong_dimension", 1),
    "NaN": (faults.nan, "non_finite", 1),
    "NaN as null": (faults.null, "non_finite", 1),
    "infinity": (faults.infinite, "non_finite", 1),
    "an integer beyond measure": (faults.first_number(10**400), "non_finite", 1),
    "zeros": (faults.zero, "zero_norm", 1),
    "too much": (faults.endless, "too_large", 1),
}


@pytest.mark.parametrize(("fault", "reason", "attempts"), LASTING.values(), ids=LASTING.keys())
def test_a_fault_that_lasts_is_refused_by_name(there: Endpoint, fault: Fault, reason: str, attempts: int) -> None:
    """D43: the reason is named, nothing is tried in vain or for ever, and neither key nor text is told."""
    there.always = fault
    embedder = made(there, bytes_max=2**20)
    began = time.monotonic()
    with refused("EMBEDDER_UNAVAILABLE") as refusal:
        embedder.embed(TEXTS)
    assert time.monotonic() - began < QUICK.total_s
    assert refusal.details["reason"] == reason
    assert len(there.asked) == attempts
    told = refusal.error.message + json.dumps(refusal.details)
    assert KEY not in told and not any(text in told for text in TEXTS)


def test_a_good_answer_after_a_refused_one_is_taken(there: Endpoint) -> None:
    """A bad answer leaves nothing behind, not even the dimension that its good rows had."""
    embedder = made(there)
    there.faults = [faults.ragged, faults.empty_rows, faults.nan]
    for _ in range(3):
        with refused("EMBEDDER_UNAVAILABLE"):
            embedder.embed(TEXTS)
    assert embedder.embed(TEXTS) == pytest.approx(WORDS.embed(TEXTS), abs=1e-6)


def test_numbers_near_the_end_of_double_precision_still_have_a_direction(there: Endpoint) -> None:
    """A row whose length cannot be computed is refused, not made into zeros."""
    there.always = faults.huge
    with refused("EMBEDDER_UNAVAILABLE") as refusal:
        made(there).embed(TEXTS)
    assert (refusal.details["reason"], refusal.details["row"]) == ("non_finite", 0)


def test_another_dimension_than_before_is_refused_with_both(there: Endpoint) -> None:
    """D43: the dimension that was learned, or asked for, is expected of every later answer."""
    embedder = made(there)
    embedder.embed(TEXTS[:1])
    there.always = faults.shorter
    for asking in (embedder, made(there, dimension=256)):
        with refused("EMBEDDER_UNAVAILABLE") as refusal:
            asking.embed(TEXTS)
        assert refusal.details == {"reason": "wrong_dimension", "expected": 256, "found": 255, "row": 0}


def test_a_redirect_is_refused_and_the_key_goes_nowhere_else(there: Endpoint) -> None:
    """A redirect to another host is told by name; that host sees neither the key nor a text."""
    with serving() as elsewhere:
        there.always = faults.status(307, Location=f"{elsewhere.url}/embeddings")
        with refused("EMBEDDER_UNAVAILABLE") as refusal:
            made(there).embed(TEXTS)
        assert (refusal.details["reason"], elsewhere.asked) == ("redirected", [])


def test_nobody_at_the_address_is_told(there: Endpoint) -> None:
    """A server that is not there is unreachable, after as many attempts as there are."""
    gone = make_endpoint("http://127.0.0.1:1/v1", "/embeddings", None)
    with refused("EMBEDDER_UNAVAILABLE") as refusal:
        OpenAiEmbedder(gone, model="words", limits=QUICK).embed(TEXTS)
    assert (refusal.details["reason"], refusal.details["attempts"]) == ("unreachable", 3)


def test_a_certificate_that_nobody_vouches_for_ends_it_before_anything_is_sent(there: Endpoint, tmp_path: Path) -> None:
    """Over TLS only a server that can be verified sees a text or the key; another one is not tried again."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path))
    with serving(tls=context) as secure:
        with refused("EMBEDDER_UNAVAILABLE") as refusal:
            made(secure).embed(TEXTS)
        assert (refusal.details["reason"], refusal.error.retriable, secure.asked) == ("tls", False, [])


def self_signed(folder: Path) -> Path:
    """Return a file with a key and a certificate for this machine that it has signed itself."""
    key, now = ec.generate_private_key(ec.SECP256R1()), system_clock()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "server.pem"
    file.write_bytes(private + made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return file


def test_the_wait_that_a_server_asks_for_is_kept(there: Endpoint) -> None:
    """Retry-After counts, in seconds or as a date."""
    soon = format_datetime(system_clock() + timedelta(seconds=1), usegmt=True)
    there.faults = [faults.status(429, Retry_After="0.3"), faults.status(503, Retry_After=soon)]
    began = time.monotonic()
    made(there, msgspec.structs.replace(QUICK, retry_after_s_max=2.0)).embed(TEXTS)
    assert time.monotonic() - began >= 0.3
    assert len(there.asked) == 3


def test_a_wait_that_is_too_long_is_not_begun(there: Endpoint) -> None:
    """A server that wants an hour is given up at once, and the error says when to come back."""
    there.always = faults.status(429, Retry_After="3600")
    with refused("EMBEDDER_UNAVAILABLE") as refusal:
        made(there).embed(TEXTS)
    assert len(there.asked) == 1
    assert refusal.error.retry_after_ms == 3_600_000


def test_a_caller_that_is_in_a_hurry_waits_no_longer(there: Endpoint) -> None:
    """Whoever is about to exit bounds all attempts together, a hanging server or not."""
    there.always = faults.hang
    began = time.monotonic()
    with at_most(0.3), refused("EMBEDDER_UNAVAILABLE"):
        made(there, msgspec.structs.replace(QUICK, answer_s=30.0, total_s=60.0)).embed(TEXTS)
    assert 0.2 < time.monotonic() - began < 15.0  # one attempt alone would have taken thirty seconds


def test_many_texts_go_in_bounded_requests_and_come_back_in_order(there: Endpoint) -> None:
    """A request holds a bounded number of texts and characters; a longer text goes alone."""
    texts = [f"text {n}" for n in range(7)] + ["word " * 40, "the end"]
    embedder = made(there, msgspec.structs.replace(QUICK, texts_max=3, chars_max=60))
    assert embedder.embed(texts) == pytest.approx(WORDS.embed(texts), abs=1e-6)
    assert [len(body["input"]) for body in there.asked] == [3, 3, 1, 1, 1]


def test_a_request_names_the_model_and_the_dimension_that_was_asked_for(there: Endpoint) -> None:
    """`?dimensions=` is sent, and known before anything is asked; without it the server decides."""
    sized, unsized = made(there, dimension=256), made(there)
    assert (sized.dimension, there.asked) == (256, [])
    sized.embed(TEXTS)
    assert (unsized.dimension, unsized.signature) == (256, sized.signature)
    assert there.asked[0] == {"model": "words", "input": TEXTS, "encoding_format": "float", "dimensions": 256}
    assert "dimensions" not in there.asked[1]
    assert sized.signature == "provider=openai;model=words;dimension=256;normalised=yes"


def test_the_key_is_sent_and_never_shown(there: Endpoint, caplog: pytest.LogCaptureFixture) -> None:
    """The key is in the request's header, and in no log, no error and no representation."""
    caplog.set_level(logging.DEBUG)
    embedder = load("openai:words", base_url=there.url, api_key=lambda: KEY)
    assert embedder is not None
    embedder.embed(TEXTS)
    assert there.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(embedder) + repr(vars(embedder)) + caplog.text


def test_without_a_key_none_is_sent(there: Endpoint) -> None:
    """A server of one's own needs no key."""
    embedder = load("openai:words", base_url=there.url)
    assert embedder is not None
    embedder.embed(TEXTS)
    assert "Authorization" not in there.headers[0]


@pytest.mark.parametrize(
    "name",
    ["openai:", "openai:a b", "openai:a;b", "openai:a?dimensions=", "openai:a?dimensions=0", "openai:a?dimensions=9e9",
     "openai:a?dimensions=99999999", "openai:a?size=3", "openai:a?", "openai:" + "a" * 201, "openai:a\n"],
)  # fmt: skip
def test_a_name_that_is_none_is_refused(name: str) -> None:
    """A model's name, and what follows it, is checked before anything is asked."""
    with pytest.raises(InvalidInputError, match=r"openai:MODEL\?dimensions=N"):
        load(name, base_url="http://127.0.0.1:1")


@pytest.mark.parametrize(
    "url",
    ["", "localhost:80", "ftp://h/v1", "http://", f"https://user:{KEY}@h/v1", f"https://h/v1?key={KEY}", "http://h:99999",
     "http://h/v1#x", "http://h/a b", "http://h:x/", "http://h\r\nX: y/"],
)  # fmt: skip
def test_a_base_url_that_is_none_is_refused_without_being_quoted(url: str) -> None:
    """Only http or https, a host and a path; a URL may hold a secret, so it is not repeated."""
    with pytest.raises(InvalidInputError, match="CORRIGENDA_EMBEDDER_BASE_URL") as told:
        make_endpoint(url, "/embeddings", None)
    assert KEY not in str(told.value)


def test_vectors_are_of_unit_length_whatever_the_server_makes(there: Endpoint) -> None:
    """D12: length is taken out here, so that no long vector outranks a near one."""
    assert np.linalg.norm(made(there).embed(TEXTS), axis=1) == pytest.approx(1, abs=1e-6)
