"""The benchmark's arithmetic: from rounds to verdicts. Nothing is timed here."""

from benchmarks import bars
from benchmarks.workload import Run, together

RATES = {"ours": [900.0, 100.0, 1000.0], "theirs": [1000.0, 50.0, 2000.0]}


def test_a_ratio_is_made_within_a_round() -> None:
    """Given a round in which everything was slow, then it counts by its ratio, not by its rate."""
    assert bars.ratios(RATES, "ours", "theirs") == 0.9


def test_a_peer_that_was_not_measured_gives_no_ratio() -> None:
    """Given no figures of a peer, then the line names what is missing, and claims neither a ratio nor a verdict."""
    assert bars.ratios(RATES, "ours", "absent") is None

    line = bars.share("ours", 900.0, "absent", None, bars.Bar(0.5))

    assert (line.ratio, line.met) == (None, None)
    assert bars.NO_PEER in line.against


def test_a_bar_that_is_not_met_is_said() -> None:
    """Given a ratio below a bar, or above one that is a limit, then the verdict is no, and the table shows it."""
    below = bars.share("ours", 30.0, "theirs", 100.0, bars.Bar(0.4))
    assert below.met is False
    assert bars.Bar(2.5, at_most=True).met(2.6) is False
    assert bars.share("ours", 40.0, "theirs", 100.0, bars.Bar(0.4)).met is True
    assert bars.near("syncs", 103, 100, 2).met is False
    assert bars.limit("look-up", 5.0, 5.0, "ms").met is True
    assert "| NO " in bars.text([below])


def test_the_percentile_is_a_call_that_was_made() -> None:
    """Given calls in order, then 99 of 100 are answered within the 99th, and one call is its own percentile."""
    assert Run(100, 1.0, [float(n) for n in range(1, 101)]).percentile(0.99) == 99.0
    assert Run(1, 1.0, [3.0]).percentile(0.99) == 3.0


def test_processes_add_up_over_the_longest() -> None:
    """Given two processes, then events add up, and the time is that of the one that took longest."""
    both = together([Run(10, 1.0, [0.3]), Run(30, 2.0, [0.1, 0.2])])

    assert (both.events, both.seconds, both.rate, both.calls) == (40, 2.0, 20.0, [0.1, 0.2, 0.3])
