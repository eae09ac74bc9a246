"""The committer's groups: what waits is stored together and in order, and what must not be stored leaves the group."""

from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

import pytest

from ledger.limits import ENVELOPE_BYTES_MAX, GROUP_BYTES_MAX, GROUP_EVENTS_MAX, PAYLOAD_BYTES_MAX
from tests.appends import (
    DEADLINE_S,
    Appends,
    assert_whole,
    conflicted,
    on_stream,
    positions,
    replayed,
    results,
    transactions,
    whole,
)
from tests.house import refused, rows


def test_what_waits_is_stored_together_in_the_order_it_came(appends: Appends, ledger_url: str) -> None:
    """XC-01: given thirty appends that wait, when they are stored, then in one transaction, each after the other."""
    with appends.waiting():
        futures = [appends.submit(f"s{number % 7}") for number in range(30)]
        assert not any(future.done() for future in futures)

    assert [positions(outcome) for outcome in results(futures)] == [[number] for number in range(2, 32)]
    assert transactions(ledger_url) == [[1], [*range(2, 32)]]


def test_an_idle_caller_waits_for_nobody(appends: Appends, ledger_url: str) -> None:
    """Given appends one after the other, when each is awaited, then each is a transaction of its own."""
    for number in range(5):
        assert appends.store("s") == [number + 1]

    assert transactions(ledger_url) == [[1], [2], [3], [4], [5]]


def test_an_append_is_never_split(appends: Appends, ledger_url: str) -> None:
    """XC-01: given an append above the limit between small ones, then it is stored whole, as a group of its own."""
    many = GROUP_EVENTS_MAX + 100
    with appends.waiting():
        before, large, after = appends.submit("s"), appends.submit(*["t"] * many), appends.submit("s")

    stored = [positions(outcome) for outcome in results([before, large, after])]

    assert [len(one) for one in stored] == [1, many, 1]
    assert [*chain.from_iterable(stored)] == [*range(2, many + 4)]
    assert transactions(ledger_url)[1:] == stored
    entries = [item.entry.envelope for item in appends.ledger.stream("name_t")]
    assert [(one.op_index, one.op_count) for one in entries] == [(index, many) for index in range(many)]
    assert [one.request is not None for one in entries] == [True] + [False] * (many - 1)


def test_a_group_holds_no_more_events_than_its_limit(appends: Appends, ledger_url: str) -> None:
    """Given appends of three events that wait, when they are stored, no transaction has more than 500 events."""
    with appends.waiting():
        futures = [appends.submit(*["s"] * 3) for _ in range(250)]

    results(futures)

    sizes = [len(group) for group in transactions(ledger_url)]
    assert sizes == [1, GROUP_EVENTS_MAX - GROUP_EVENTS_MAX % 3, 750 - (GROUP_EVENTS_MAX - GROUP_EVENTS_MAX % 3)]


def test_a_group_holds_no_more_bytes_than_its_limit(appends: Appends, ledger_url: str) -> None:
    """Given appends of 200,000 bytes that wait, when they are stored, no transaction has more than 1 MB of payload."""
    with appends.waiting():
        futures = [appends.submit("s", name="x" * 199_900) for _ in range(12)]

    results(futures)

    sizes = rows(
        ledger_url,
        "SELECT sum(length(body)) FROM corrigenda.payload WHERE seq > 1 GROUP BY xmin::text ORDER BY min(seq)",
    )
    assert [size <= GROUP_BYTES_MAX for (size,) in sizes] == [True] * 3


def test_a_stream_that_moved_since_it_was_written_on_is_a_conflict(appends: Appends, ledger_url: str) -> None:
    """XC-03, RC-13: given two appends decided on one version of a stream, in one group or later, the first wins."""
    with appends.waiting():
        first, second = (appends.submit("s", reads={"s": 0}) for _ in range(2))
    later = appends.submit("s", reads={"s": 0})

    assert positions(first.result(DEADLINE_S)) == [2]
    assert [conflicted(outcome) for outcome in results([second, later])] == ["s", "s"]
    assert on_stream(ledger_url, "s") == [2]
    assert appends.store("s", reads={"s": 1}) == [3]


def test_a_stream_that_was_only_read_counts_as_well(appends: Appends, ledger_url: str) -> None:
    """XC-03: given two appends that each read what the other writes, when both wait, then only one is stored."""
    with appends.waiting():
        one = appends.submit("s", reads={"s": 0, "t": 0})
        other = appends.submit("t", reads={"s": 0, "t": 0})

    assert positions(one.result(DEADLINE_S)) == [2]
    assert conflicted(other.result(DEADLINE_S)) == "s"
    assert on_stream(ledger_url, "t") == []


def test_a_stream_read_that_another_process_moved_is_a_conflict(appends: Appends, ledger_url: str, home: Path) -> None:
    """XC-03: given a decision that read a stream, when another process has written to it since, it is not stored."""
    with whole(ledger_url, home) as other:
        other.store("policy")

        assert conflicted(appends.submit("s", reads={"policy": 0}).result(DEADLINE_S)) == "policy"

    assert appends.store("s", reads={"policy": 1}) == [2]


def test_who_is_left_out_of_a_group_holds_nobody_up(appends: Appends, ledger_url: str) -> None:
    """Given a group with conflicts, replays and one too large, when it is stored, the rest is, in one transaction."""
    done = appends.store("s", key="k")
    with appends.waiting():
        futures = [
            appends.submit("a"),
            appends.submit("s", reads={"s": 0}),
            appends.submit("b"),
            appends.submit("s", key="k"),
            appends.submit("c", kind="k" * ENVELOPE_BYTES_MAX),
            appends.submit("d"),
        ]
        with refused("PAYLOAD_TOO_LARGE"):
            appends.submit("e", name="n" * PAYLOAD_BYTES_MAX)

    assert conflicted(futures[1].result(DEADLINE_S)) == "s"
    assert [replayed(futures[3].result(DEADLINE_S))] == done
    with refused("PAYLOAD_TOO_LARGE") as refusal:
        futures[4].result(DEADLINE_S)
    assert refusal.details["limit"] == ENVELOPE_BYTES_MAX
    assert [positions(futures[number].result(DEADLINE_S)) for number in (0, 2, 5)] == [[3], [4], [5]]
    assert transactions(ledger_url) == [done, [2], [3, 4, 5]]


@pytest.mark.parametrize(("room", "fits"), [(0, True), (1, False)])
def test_an_envelope_may_be_of_16_kib_and_no_more(appends: Appends, room: int, fits: bool) -> None:
    """Given an envelope of exactly 16 KiB, then it is stored; of a byte more, it alone is refused."""
    (at,) = appends.store("s", kind="k")
    spare = ENVELOPE_BYTES_MAX - len(appends.ledger.at([at])[at].entry.raw)
    future = appends.submit("s", kind="k" * (1 + spare + room))

    if fits:
        assert positions(future.result(DEADLINE_S)) == [at + 1]
        assert len(appends.ledger.at([at + 1])[at + 1].entry.raw) == ENVELOPE_BYTES_MAX
    else:
        with refused("PAYLOAD_TOO_LARGE") as refusal:
            future.result(DEADLINE_S)
        assert refusal.details["found"] == ENVELOPE_BYTES_MAX + 1


@pytest.mark.parametrize("name", ["a\x00b", "\ud800"])
def test_a_text_that_could_never_be_read_again_is_refused_alone(appends: Appends, name: str) -> None:
    """Given a NUL or half a surrogate pair in a payload or in a fact, then that append is refused, and it alone."""
    with appends.waiting():
        with refused("VALIDATION_FAILED"):
            appends.submit("s", name=name)
        bad, good = appends.submit("s", kind=name), appends.submit("s")

    with refused("VALIDATION_FAILED"):
        bad.result(DEADLINE_S)
    assert positions(good.result(DEADLINE_S)) == [2]


def test_one_key_twice_in_a_group_is_one_effect(appends: Appends, ledger_url: str) -> None:
    """RC-14, RC-23: given one key twice among what waits, when the group is stored, the second is to look again."""
    with appends.waiting():
        first, second = appends.submit("s", key="k"), appends.submit("s", key="k")

    assert positions(first.result(DEADLINE_S)) == [2]
    assert conflicted(second.result(DEADLINE_S)) == "s"
    assert replayed(appends.submit("s", key="k").result(DEADLINE_S)) == 2
    assert on_stream(ledger_url, "s") == [2]


def test_a_key_is_answered_from_the_ledger_whatever_comes_with_it(appends: Appends, ledger_url: str) -> None:
    """RC-14, RC-16: given a key that was used, when it comes again, with a changed body too, its position is told."""
    done = appends.store("s", key="k")

    assert [replayed(appends.submit("s", key="k").result(DEADLINE_S))] == done
    assert [replayed(appends.submit("t", key="k", body=b'{"x":1}').result(DEADLINE_S))] == done
    assert [replayed(appends.submit("s", key="k", reads={"s": 0}).result(DEADLINE_S))] == done
    assert transactions(ledger_url) == [done]


def test_nobody_can_take_back_what_waits(appends: Appends, ledger_url: str) -> None:
    """Given an append that waits, when its future is cancelled, it and its group are stored all the same."""
    with appends.waiting():
        given_up, other = appends.submit("s"), appends.submit("s")
        assert not given_up.cancel()

    assert [positions(outcome) for outcome in results([given_up, other])] == [[2], [3]]
    assert on_stream(ledger_url, "s") == [2, 3]


@pytest.mark.parametrize("shift", [timedelta(hours=-1), timedelta(days=366)])
def test_order_is_by_position_whatever_the_clock_says(
    ledger_url: str, home: Path, no_settings: None, shift: timedelta
) -> None:
    """Given a clock that is set back an hour or forward a year, and back again, order and links are by position."""
    now = [datetime(2026, 5, 1, tzinfo=UTC)]
    with whole(ledger_url, home, clock=lambda: now[0]) as appends:
        first = appends.store("s")
        now[0] += shift
        second = appends.store("s")
        now[0] -= shift
        third = appends.store("s")

        assert first + second + third == [1, 2, 3]
        times = [item.entry.envelope.at for item in appends.ledger.stream("name_s")]
        assert times[0] == times[2] != times[1]


def test_what_waits_when_the_committer_is_closed_is_stored(ledger_url: str, home: Path, no_settings: None) -> None:
    """XC-01: given appends that wait, when the committer is closed, they are stored; what comes after is refused."""
    appends = Appends(ledger_url, home)
    with appends.waiting():
        futures = [appends.submit("s") for _ in range(GROUP_EVENTS_MAX + 50)]
    appends.close()

    assert all(future.done() for future in futures)
    assert len(on_stream(ledger_url, "s")) == GROUP_EVENTS_MAX + 50
    with refused("UNAVAILABLE"):
        appends.submit("s")
    appends.committer.close()
    assert_whole(ledger_url, home)
