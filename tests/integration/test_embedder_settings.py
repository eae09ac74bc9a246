"""The settings of the embedder: from the environment or a file, and a key that is told to nobody."""

from pathlib import Path

import pytest

from gateway.bootstrap import load_embedder
from gateway.settings import read_settings
from tests.house import refused

KEY = "sk-QX-4411-ZULU"
PLACE = "CORRIGENDA_EMBEDDER_API_KEY"


def test_the_key_comes_from_the_environment_or_a_file(tmp_path: Path) -> None:
    """The variable wins over the file that the same name with _FILE gives; without both there is none."""
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    found = [
        read_settings(environ).embedder_api_key
        for environ in ({PLACE: "sk-other", f"{PLACE}_FILE": str(file)}, {f"{PLACE}_FILE": str(file)}, {})
    ]
    assert [key and key.reveal() for key in found] == ["sk-other", KEY, None]


def test_a_key_is_not_printed_with_the_settings() -> None:
    """Settings can be shown: the key in them says only that there is one."""
    settings = read_settings({PLACE: KEY, "CORRIGENDA_EMBEDDER": "openai:words"})
    assert KEY not in f"{settings!r} {settings.embedder_api_key}"
    assert "Secret(…)" in repr(settings)


@pytest.mark.parametrize("key", [f"{KEY}\r\nX-Other: 1", f"{KEY} two", f"{KEY}é"])
def test_a_key_that_would_change_a_header_is_refused_unseen(key: str) -> None:
    """Only printable ASCII goes into a header, and what is refused is not quoted."""
    with refused("VALIDATION_FAILED") as refusal:
        read_settings({PLACE: key})
    assert PLACE in refusal.error.message and KEY not in refusal.error.message


def test_a_key_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A file that is not there, or is no text, is told with the variable that named it, without what is in it."""
    (tmp_path / "binary").write_bytes(b"sk-\xff")
    for file in ("missing", "binary"):
        with refused("VALIDATION_FAILED") as refusal:
            read_settings({f"{PLACE}_FILE": str(tmp_path / file)})
        assert f"{PLACE}_FILE" in refusal.error.message
        assert "0xff" not in refusal.error.message


def test_an_endpoints_settings_reach_the_embedder() -> None:
    """The base URL is where the embedder asks; the default is OpenAI's; a bad one is refused by the variable's name."""
    named = {"CORRIGENDA_EMBEDDER": "openai:words"}
    there = {**named, "CORRIGENDA_EMBEDDER_BASE_URL": "http://embedder.test:8080/v1/"}
    assert "embedder.test:8080" in repr(load_embedder(read_settings(there)))
    assert "api.openai.com" in repr(load_embedder(read_settings(named)))
    with refused("VALIDATION_FAILED") as refusal:
        load_embedder(read_settings({**named, "CORRIGENDA_EMBEDDER_BASE_URL": "embedder.test"}))
    assert "CORRIGENDA_EMBEDDER_BASE_URL" in refusal.error.message
