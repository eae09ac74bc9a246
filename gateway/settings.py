"""Where things are: arguments before environment before defaults. Reads nothing but the environment."""

import getpass
import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ledger.errors import failure, refuse
from ledger.limits import NAME_CHARS_MAX
from ledger.opening import TENANT, KeyFiles

EMBEDDED_GRACE_S = 30.0
TRUE = frozenset({"1", "true", "yes"})


class Secret:
    """A text that is handed to whoever needs it, and is never printed."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "Secret(…)"

    def reveal(self) -> str:
        """Return the text."""
        return self._text


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that a gateway needs to know before it opens."""

    database_url: str | None
    pooled: bool
    home: Path
    keys: KeyFiles
    anchors: Path
    tenant: str
    project: str | None
    actor: str
    embedder: str
    index: str
    embedded_grace_s: float
    postgres_bin: Path | None = None
    embedder_base_url: str | None = None
    embedder_api_key: Secret | None = None


def read_settings(
    environ: Mapping[str, str] = os.environ,
    *,
    database_url: str | None = None,
    home: str | Path | None = None,
    tenant: str | None = None,
    project: str | None = None,
    actor: str | None = None,
    embedder: str | None = None,
) -> Settings:
    """Return the settings in force. A value that cannot be used is VALIDATION_FAILED naming it."""
    given = {"database_url": database_url, "tenant": tenant, "project": project, "actor": actor, "embedder": embedder}
    for name, value in {**given, "home": str(home) if isinstance(home, Path) else home}.items():
        _check_text(name, value)
    place = Path(home or environ.get("CORRIGENDA_HOME") or _data_folder(environ)).expanduser().absolute()
    keys = KeyFiles(
        ledger=Path(environ.get("CORRIGENDA_LEDGER_KEY_FILE") or place / "keys" / "ledger.key"),
        signing=Path(environ.get("CORRIGENDA_SIGNING_KEY_FILE") or place / "keys" / "signing.pem"),
    )
    return Settings(
        database_url=database_url
        or _given(environ, "CORRIGENDA_DATABASE_URL", "a URL")
        or _given(environ, "DATABASE_URL", "a URL"),
        pooled=environ.get("CORRIGENDA_POOLED", "0").lower() in TRUE,
        home=place,
        keys=keys,
        anchors=Path(environ.get("CORRIGENDA_ANCHOR") or place / "anchor").expanduser().absolute(),
        tenant=_tenant(environ.get("CORRIGENDA_TENANT") or TENANT if tenant is None else tenant),
        project=project or environ.get("CORRIGENDA_PROJECT") or None,
        actor=actor or environ.get("CORRIGENDA_ACTOR") or f"human:{_user()}",
        embedder=embedder or environ.get("CORRIGENDA_EMBEDDER") or "builtin",
        index=_one_of(environ, "CORRIGENDA_INDEX", ("faiss", "exact")),
        embedded_grace_s=_seconds(environ, "CORRIGENDA_EMBEDDED_GRACE_S", EMBEDDED_GRACE_S),
        postgres_bin=_folder(environ, "CORRIGENDA_POSTGRES_BIN"),
        embedder_base_url=environ.get("CORRIGENDA_EMBEDDER_BASE_URL") or None,
        embedder_api_key=_key(environ),
    )


def _check_text(name: str, value: object) -> None:
    """Refuse a setting that is no text, or one that the system could not be given."""
    try:
        if value is None or (isinstance(value, str) and b"\x00" not in value.encode()):
            return
    except UnicodeEncodeError:
        pass
    refuse(
        "VALIDATION_FAILED",
        f"The setting {name} should be a text of valid Unicode, and it is something else. Give one, or leave it out.",
        fields=[{"field": name, "problem": "is not a text"}],
    )


def _key(environ: Mapping[str, str]) -> Secret | None:
    name = "CORRIGENDA_EMBEDDER_API_KEY"
    key = _given(environ, name, "a key")
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        refuse("VALIDATION_FAILED", f"{name} should be a key of printable ASCII characters, and it is something else.")
    return None if key is None else Secret(key)


def _given(environ: Mapping[str, str], name: str, what: str) -> str | None:
    """Return a text from the environment, or from the file that the same name with `_FILE` gives."""
    file = environ.get(f"{name}_FILE")
    if environ.get(name) or not file:
        return environ.get(name) or None
    try:
        return Path(file).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        # Not the decoder's own words: they quote what was found.
        problem = error if isinstance(error, OSError) else "it is no UTF-8 text"
        raise failure(
            "VALIDATION_FAILED", f"{name}_FILE should name a file that holds {what}, and it cannot be read: {problem}."
        ) from None


def _data_folder(environ: Mapping[str, str]) -> Path:
    """Return the platform's user data folder (XDG base directories; Apple's Application Support)."""
    if os.uname().sysname == "Darwin":
        return Path("~/Library/Application Support/corrigenda")
    return Path(environ.get("XDG_DATA_HOME") or "~/.local/share") / "corrigenda"


def _folder(environ: Mapping[str, str], name: str) -> Path | None:
    """Return a folder that the environment names, absolute; whether there is one is for its user to say."""
    return Path(environ[name]).expanduser().absolute() if environ.get(name) else None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"


def _tenant(name: str) -> str:
    if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable() or name != name.strip():
        refuse(
            "VALIDATION_FAILED",
            f"A tenant (--tenant, CORRIGENDA_TENANT) should be a name of 1 to {NAME_CHARS_MAX} printable characters "
            "without spaces around it, and another text was given.",
            fields=[{"field": "tenant", "problem": "is not such a name"}],
        )
    return name


def _one_of(environ: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    value = environ.get(name) or allowed[0]
    if value not in allowed:
        refuse("VALIDATION_FAILED", f"{name} should be one of {', '.join(allowed)}, and it is something else.")
    return value


def _seconds(environ: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(environ.get(name) or default)
    except ValueError:
        value = -1.0
    if not 0 < value < 86_400:
        refuse("VALIDATION_FAILED", f"{name} should be a number of seconds above 0 and below 86400.")
    return value
