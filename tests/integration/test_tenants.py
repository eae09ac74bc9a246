"""Several tenants in one database: each has a ledger of its own, and none can tell that the others are there."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.bootstrap import open_bare
from gateway.service import Gateway
from tests.house import assert_house_in_order, refused, rows, tamper, types, written
from tests.integration.conftest import Here
from tests.roles import as_owner


def init(here: Here, tenant: str = "acme", **more: Any) -> dict[str, Any]:  # Any: what `init` takes, and JSON
    """Run what `db init --tenant` runs, as the tables' owner does."""
    with open_bare(database_url=as_owner(here.ledger_url), home=here.home, tenant=tenant) as bare:
        return bare.init(**more)


def fill(gateway: Gateway) -> list[str]:
    """Say the same things, under the same names and keys, as every other tenant; return the revisions."""
    first = gateway.remember(
        "the bridge is open", memory_id="m", tags=["road"], agent="planner", user="ana", session="s1",
        visibility="project", sources=["sign"], idempotency_key="k1", reason="seen",
    )  # fmt: skip
    second = gateway.correct("m", "the bridge is shut", reason="flood", idempotency_key="k2")
    third = gateway.remember("the ferry runs", memory_id="n", idempotency_key="k3")
    gateway.link("n", "m", idempotency_key="k4")
    gateway.search("bridge")
    return [receipt.revision_id or "" for receipt in (first, second, third)]


@pytest.fixture
def two(open_here: Here) -> Iterator[tuple[Gateway, Gateway]]:
    """Return Ana's gateways on the tenants `local` and `acme`, which have said the same; both are in order after."""
    local = open_here()
    init(open_here)
    yield local, open_here(tenant="acme")
    open_here.close()
    assert_house_in_order(open_here.ledger_url, open_here.home, tenant="acme")


def ledgers(here: Here) -> dict[str, str]:
    """Return the ledger of each tenant."""
    return dict(rows(here.ledger_url, "SELECT name, ledger FROM corrigenda.tenant"))


def test_a_tenant_has_a_ledger_of_its_own(open_here: Here) -> None:
    """RC-12: given `db init --tenant`, then a second ledger with its own event 0 and origin; repeated, nothing."""
    open_here().remember("a")
    first = init(open_here)
    assert init(open_here) == {name: value for name, value in first.items() if name not in ("next", "sql")}

    own = ledgers(open_here)
    assert own.keys() == {"local", "acme"} and own["acme"] == first["ledger"] != own["local"]
    assert first["origin"] == f"corrigenda.invalid/{first['ledger']}"
    openings = rows(open_here.ledger_url, "SELECT ledger, envelope FROM corrigenda.event WHERE seq = 0")
    logs = {ledger: json.loads(bytes(envelope))["log"] for ledger, envelope in openings}
    assert len(set(logs.values())) == 2 and logs[first["ledger"]] == first["origin"]
    with open_here(tenant="acme") as acme:
        assert acme.remember("b").position == 3
    for tenant in own:
        assert_house_in_order(open_here.ledger_url, open_here.home, tenant=tenant)


def test_first_use_makes_local_in_an_empty_database_only(open_here: Here) -> None:
    """G11: given a database with another tenant only, then opening makes nothing in it, and `db init` makes `local`."""
    init(open_here)
    with refused("NOT_CONFIGURED"):
        open_here()
    assert ledgers(open_here).keys() == {"acme"}
    init(open_here, "local")
    open_here().remember("a")
    assert ledgers(open_here).keys() == {"local", "acme"}


def digests(here: Here, ledger: str) -> set[str]:
    """Return every hash, digest and seal that is stored for a ledger, in hex, out of columns and envelopes alike."""
    columns = (
        ("event", "hash"), ("event", "seal"), ("event", "request"), ("payload", "salt"), ("embedding", "content"),
        ("embedding", "seal"), ("event", "convert_to(stream, 'UTF8')"), ("event", "envelope"),
    )  # fmt: skip
    found: set[str] = set()
    for table, column in columns:
        query = f"SELECT {column} FROM corrigenda.{table} WHERE ledger = %s"  # noqa: S608 - the names above
        for (value,) in rows(here.ledger_url, query, ledger):
            raw = bytes(value or b"")
            found |= {match.decode() for match in re.findall(rb"[0-9a-f]{64}", raw)} or {raw.hex()}
    return found - {"", "0" * 64}


def test_the_same_content_has_other_digests_in_each_tenant(two: tuple[Gateway, Gateway], open_here: Here) -> None:
    """G11: given the same names, keys and texts in two tenants, then no stored hash, digest or seal is equal."""
    for gateway in two:
        fill(gateway)
    open_here.close()

    own = ledgers(open_here)
    local, acme = digests(open_here, own["local"]), digests(open_here, own["acme"])
    assert len(local) == len(acme) > 40
    assert local & acme == set()


def test_a_key_that_another_tenant_used_is_new(two: tuple[Gateway, Gateway], open_here: Here) -> None:
    """RC-12, RC-14: given the same keys in two tenants, then each act takes effect in both, and replays in its own."""
    local, acme = two
    assert not local.remember("a", idempotency_key="k").replayed
    assert not acme.remember("b", idempotency_key="k").replayed
    assert acme.remember("b", idempotency_key="k").replayed
    with refused("IDEMPOTENCY_KEY_REUSED"):
        local.remember("b", idempotency_key="k")


def test_nothing_of_one_tenant_is_found_through_another(two: tuple[Gateway, Gateway]) -> None:
    """RC-12: given the same said in both, then ids, searches, histories and graphs know their own tenant's alone."""
    local, acme = two
    ours, theirs = fill(local), fill(acme)
    acme.remember("a secret of the bridge")

    assert {hit.revision_id for hit in local.search("bridge secret ferry", k=20).hits} == set(ours[1:])
    assert {item.revision_id for item in local.history("m").items} == set(ours[:2])
    assert {node.id for node in local.lineage("m").nodes} == {"m", "n", *ours[:2]}
    for revision in theirs:
        for read in (local.show, local.explain, local.history, local.lineage):
            with refused("MEMORY_NOT_FOUND"):
                read(revision)
        assert local.complete(revision[:26]) == ()
    assert local.show("m").content == acme.show("m").content


def test_acts_on_another_tenants_ids_are_refused_like_unknown_ones(
    two: tuple[Gateway, Gateway], open_here: Here
) -> None:
    """G11: given a foreign id and one that nobody has, then each refusal is the same to the byte; nothing moves."""
    local, acme = two
    fill(local)
    foreign = fill(acme)[1]
    unknown = foreign[:-4] + ("0000" if foreign[-4:] != "0000" else "1111")
    before = rows(open_here.ledger_url, "SELECT ledger, seq FROM corrigenda.head ORDER BY 1")

    def said(act: str, *args: str, **more: Any) -> dict[str, Any]:  # Any: what the act takes, and JSON
        with refused("MEMORY_NOT_FOUND") as refusal:
            getattr(local, act)(*args, **more)
        return {"message": refusal.error.message, "details": refusal.details, "trace": refusal.error.trace_id}

    for identifier in (foreign, acme.history("m").items[0].revision_id):
        for act, args, more in (
            ("correct", ["x"], {}), ("retire", [], {}), ("revoke", [], {"reason": "x"}), ("restore", [], {}),
            ("show", [], {}), ("explain", [], {}), ("history", [], {}), ("lineage", [], {}),
        ):  # fmt: skip
            assert said(act, identifier, *args, **more) == said(act, unknown, *args, **more)
        assert said("link", "m", identifier) == said("link", "m", unknown)
        assert said("link", identifier, "m") == said("link", unknown, "m")
    assert rows(open_here.ledger_url, "SELECT ledger, seq FROM corrigenda.head ORDER BY 1") == before


def test_an_unknown_tenant_is_told_the_same_whoever_is_there(open_here: Here) -> None:
    """G11: given a tenant that has no ledger, then NOT_CONFIGURED is the same to the byte with and without others."""

    def said() -> tuple[str, dict[str, Any]]:  # Any: JSON
        with refused("NOT_CONFIGURED") as refusal:
            open_here(tenant="zeta")
        with open_bare(database_url=open_here.ledger_url, home=open_here.home, tenant="zeta", create=False) as bare:
            for look in (bare.verify, bare.status, bare.list_keys, lambda: list(bare.log())):
                with refused("NOT_CONFIGURED") as again:
                    look()
                assert again.error.message == refusal.error.message
        return refusal.error.message, refusal.details

    alone = said()
    open_here().remember("a")
    init(open_here)
    assert said() == alone
    assert "`corrigenda db init --tenant zeta`" in alone[0]
    assert "zeta" not in ledgers(open_here)


@pytest.mark.parametrize("name", ["", " acme", "acme ", "a\x00b", "a\nb", "\ud800", "x" * 256])
def test_a_tenant_is_a_printable_name(open_here: Here, name: str) -> None:
    """Given a tenant that no name can be, then VALIDATION_FAILED names the field, and nothing is made."""
    open_here.broken = True  # there is no house
    with refused("VALIDATION_FAILED") as refusal:
        init(open_here, name)
    assert refusal.details["fields"][0]["field"] == "tenant"
    assert ledgers(open_here) == {}


def test_only_the_owner_makes_a_further_tenant(open_here: Here) -> None:
    """G11: given a ledger, then a service's role is shown no other tenant and makes none; the owner is told to."""
    open_here().remember("a")
    with (
        open_bare(database_url=open_here.ledger_url, home=open_here.home, tenant="acme") as bare,
        refused("FORBIDDEN_ACTOR") as refusal,
    ):
        bare.init()
    assert "owner's URL" in refusal.error.message and "GRANT" not in refusal.error.message
    assert ledgers(open_here).keys() == {"local"}


def test_a_tenant_may_have_any_printable_name(open_here: Here) -> None:
    """Given a name full of quotes, then the command that makes it is quoted for a shell, and it works."""
    open_here().remember("a")
    odd = 'Ann & Co\'s "best"; DROP TABLE corrigenda.event --'
    with refused("NOT_CONFIGURED") as refusal:
        open_here(tenant=odd)
    assert "--tenant 'Ann & Co'\"'\"'s \"best\"; DROP TABLE corrigenda.event --'" in refusal.error.message
    init(open_here, odd)
    with open_here(tenant=odd) as gateway:
        assert gateway.remember("b").position == 3


def test_an_origin_is_one_ledgers(open_here: Here) -> None:
    """Given an origin that another ledger here has, then INVALID_INPUT and nothing made; a checkpoint names one log."""
    open_here().remember("a")
    init(open_here, origin="ledger.example.org/acme")
    with refused("INVALID_INPUT"):
        init(open_here, "beta", origin="ledger.example.org/acme")
    assert "beta" not in ledgers(open_here)
    assert init(open_here, "beta", origin="ledger.example.org/beta")["origin"] == "ledger.example.org/beta"


def _no_ledger_key(keys: Path) -> None:
    (keys / "ledger.key").unlink()


def _no_signing_key(keys: Path) -> None:
    (keys / "signing.pem").unlink()


def _foreign_key(keys: Path) -> None:
    (keys / "ledger.key").write_bytes(
        b'{"format":"corrigenda-ledger-key/1","naming":"%s=","seal":"%s="}\n' % (b"A" * 43, b"A" * 43)
    )


@pytest.mark.parametrize("spoil", [_no_ledger_key, _no_signing_key, _foreign_key])
def test_without_the_keys_of_the_ledgers_that_are_there_none_is_made(open_here: Here, spoil: Any) -> None:
    """Given a ledger and a key file that is gone or another's, then `db init --tenant` makes neither ledger nor key."""
    open_here().remember("a")
    open_here.close()
    open_here.broken = True
    spoil(open_here.home / "keys")
    kept = {path.name: path.read_bytes() for path in (open_here.home / "keys").iterdir()}

    with refused("LEDGER_UNVERIFIED"):
        init(open_here)

    assert ledgers(open_here).keys() == {"local"}
    assert {path.name: path.read_bytes() for path in (open_here.home / "keys").iterdir()} == kept


def test_a_tenant_whose_row_was_renamed_is_not_begun_anew(open_here: Here) -> None:
    """Given the row of `local` under another name, then nobody makes a second one; who looks finds it broken at 0."""
    open_here().remember("a")
    open_here.close()
    open_here.broken = True
    tamper(open_here.ledger_url, ("UPDATE corrigenda.tenant SET name = 'gone'", []))
    with refused("NOT_CONFIGURED"):
        open_here()
    with refused("INTEGRITY_BROKEN") as refusal:
        init(open_here, "local")
    assert refusal.details["position"] == 0
    assert rows(open_here.ledger_url, "SELECT count(*) FROM corrigenda.head") == [(1,)]


def test_a_tenant_whose_row_was_deleted_is_not_begun_anew(open_here: Here) -> None:
    """Given one of two rows deleted, then neither opening nor `db init` makes a ledger in its place."""
    open_here().remember("a")
    init(open_here)
    open_here.close()
    open_here.broken = True
    tamper(open_here.ledger_url, ("DELETE FROM corrigenda.tenant WHERE name = 'acme'", []))
    for act in (lambda: open_here(tenant="acme"), lambda: init(open_here)):
        with refused("INTEGRITY_BROKEN") as refusal:
            act()
        assert refusal.details["position"] == 0
    assert rows(open_here.ledger_url, "SELECT count(*) FROM corrigenda.head") == [(2,)]
    with open_here() as local:
        assert local.search("a").hits


def test_rows_that_were_exchanged_open_nothing(open_here: Here) -> None:
    """G11: given two tenants' rows exchanged, then neither is served the other's ledger."""
    open_here().remember("a")
    init(open_here)
    open_here.close()
    open_here.broken = True
    tamper(
        open_here.ledger_url,
        ("UPDATE corrigenda.tenant SET name = 'x' WHERE name = 'local'", []),
        ("UPDATE corrigenda.tenant SET name = 'local' WHERE name = 'acme'", []),
        ("UPDATE corrigenda.tenant SET name = 'acme' WHERE name = 'x'", []),
    )
    for tenant in ("local", "acme"):
        with refused("INTEGRITY_BROKEN") as refusal:
            open_here(tenant=tenant)
        assert refusal.details["position"] == 0


def test_an_event_of_another_tenant_is_not_followed(two: tuple[Gateway, Gateway], open_here: Here) -> None:
    """G8, G11: given a tenant's last event copied into another's ledger, then that one is broken there."""
    local, acme = two
    fill(local)
    fill(acme)
    open_here.close()
    own = ledgers(open_here)
    last = len([0 for _ in written_of(open_here, own["acme"])]) - 1
    tamper(
        open_here.ledger_url,
        (
            "INSERT INTO corrigenda.event SELECT %s, seq + 1, stream, stream_seq + 900, envelope, hash, seal, NULL"
            " FROM corrigenda.event WHERE ledger = %s AND seq = %s",
            [own["local"], own["acme"], last],
        ),
    )
    with open_bare(database_url=open_here.ledger_url, home=open_here.home, create=False) as bare:
        assert bare.verify().exit_code == 10
    tamper(
        open_here.ledger_url,
        ("DELETE FROM corrigenda.event WHERE ledger = %s AND seq = %s", [own["local"], last + 1]),
    )


def written_of(here: Here, ledger: str) -> list[Any]:  # Any: a row
    """Return the positions of one ledger."""
    return rows(here.ledger_url, "SELECT seq FROM corrigenda.event WHERE ledger = %s", ledger)


def test_each_tenant_verifies_and_says_so_alone(two: tuple[Gateway, Gateway], open_here: Here) -> None:
    """Given both filled, then `verify`, `status` and the log of each count its own events and no more."""
    for gateway in two:
        fill(gateway)
    counts: list[int] = []
    for tenant in ("local", "acme"):
        with open_bare(database_url=open_here.ledger_url, home=open_here.home, tenant=tenant, create=False) as bare:
            report = bare.verify()
            assert report.ok and report.size == report.events == len(list(bare.log()))
            assert bare.status().ledger["tenant"] == tenant
            assert bare.status().memories == {"active": 2, "superseded": 1}
            counts.append(report.size)
    assert counts[0] == counts[1]
    assert len(types(written(open_here.ledger_url))) == sum(counts)
