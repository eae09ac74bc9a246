"""`corrigenda demo`: the whole story on a server of its own, narrated, and true only if every claim was checked.

Real history goes in; an agent is told something stale; one correction, one killed process, one revocation and one
changed byte later, each claim that was made has been looked at. The first one that does not hold ends the demo.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
import psycopg

from cli.views.graph import tree
from gateway import embedded
from gateway.bootstrap import open_bare, open_gateway
from gateway.imports.excerpt import EXCERPT
from gateway.service import Gateway
from gateway.shapes.replies.audit import Verification
from gateway.shapes.replies.writes import Receipt
from ledger.sql import load
from projections.embedders import Vectors

PROJECT = "peps"
QUESTION = "Who is responsible for pip?"
CORRECTION = (
    "PEP 609: Python Packaging Authority (PyPA) Governance\nStatus: Superseded\nType: Process\nReplaces: none\n"
    "Superseded by: PEP 772\nAbstract: The elected Packaging Council of PEP 772 has taken over this authority."
)
LESSON = "Wheels for a release are built in the pipeline, never on a laptop."
LESSON_QUESTION = "Where are wheels built?"
SERVER_GRACE_S = 2.0

QUERIES = load("cli")


class Story:
    """Tells what happens, and ends the demo where something did not."""

    def __init__(self) -> None:
        self._line = 0
        self._began = time.monotonic()

    def tell(self, text: str) -> None:
        """Say the next thing that has been checked."""
        self._line += 1
        click.echo(f"{self._line:>2}. {text}")

    def claim(self, holds: bool, what: str) -> None:
        """Go on only if the claim holds."""
        if not holds:
            raise click.ClickException(f"the demo expected that {what}, and that was not so.")

    @property
    def seconds(self) -> float:
        """Return how long the demo has taken."""
        return time.monotonic() - self._began


def run(keep: bool) -> int:
    """Play the demo in a home of its own; return 0 if every claim held. With `keep` the home stays."""
    home = Path(tempfile.mkdtemp(prefix="corrigenda-demo-"))
    os.environ["CORRIGENDA_EMBEDDED_GRACE_S"] = str(SERVER_GRACE_S)
    story = Story()
    try:
        _play(story, home)
        story.tell(f"Every claim was checked, in {story.seconds:.0f} s. {_next(home, keep)}")
    finally:
        if not keep:
            _remove(home)
    return 0


def _play(story: Story, home: Path) -> None:
    with open_gateway(home=home, project=PROJECT, actor="human:demo") as gateway:
        _import(story, gateway)
        fixed = _correct(story, gateway)
        _draw(story, gateway)
    _kill_and_recover(story, home)
    _revoke(story, home, fixed)
    _tamper(story, home, fixed.position)


def _import(story: Story, gateway: Gateway) -> None:
    report = gateway.import_peps(EXCERPT)
    memories = {event.stream for event in gateway.events() if event.type == "memory.remembered.v1"}
    story.claim(report.rejected == 0 and len(memories) >= 200, "200 memories or more were imported")
    story.tell(
        f"Imported what {len(memories)} Python Enhancement Proposals said about themselves, 2000 to 2026: "
        f"{report.stored} revisions, {report.links} supersessions, "
        f"sealed events 0 to {report.position}."
    )


def _correct(story: Story, gateway: Gateway) -> Receipt:
    stale = gateway.search(QUESTION, k=1).hits[0]
    story.claim(stale.memory_id == "pep-609" and "Active" in (stale.content or ""), "the answer was the stale one")
    story.tell(f'An agent asks "{QUESTION}" and is told: {_short(stale.content)} (stale).')
    fixed = gateway.correct("pep-609", CORRECTION, reason="PEP 772 has taken over")
    story.tell(f"One call corrects it, at position {fixed.position}: {fixed.revision_id} replaces {stale.revision_id}.")
    right = gateway.search(QUESTION, k=1).hits[0]
    story.claim(right.revision_id == fixed.revision_id, "the same question was answered by the correction")
    explained = gateway.explain(stale.revision_id)
    story.claim(explained.superseded_by == (fixed.revision_id,), "the stale revision names its successor")
    story.tell(f"The same question now answers: {_short(right.content)}")
    return fixed


def _draw(story: Story, gateway: Gateway) -> None:
    lineage = gateway.lineage("pep-345")
    memories = {node.id for node in lineage.nodes if node.type == "memory"}
    story.claim({"pep-241", "pep-314", "pep-345", "pep-566"} <= memories, "the lineage reaches from PEP 241 to PEP 566")
    story.tell("The lineage of PEP 345, from its own events, newest first:")
    drawn = tree(msgspec.structs.replace(lineage, nodes=tuple(node for node in lineage.nodes if node.id in memories)))
    click.echo("\n".join(f"      {line}" for line in drawn.splitlines()))


def _kill_and_recover(story: Story, home: Path) -> None:
    """A process remembers something and is killed before its vector is made; recovery makes up for it, once."""
    command = [sys.executable, "-P", "-c", "import cli.demo; cli.demo.die_while_indexing()", str(home)]
    died = subprocess.run(command, capture_output=True, text=True, check=False)
    story.claim(died.returncode == -signal.SIGKILL, f"the process was killed ({died.stderr.strip()[-300:]})")
    position = int(died.stdout)
    with open_bare(home=home) as bare:
        pending = bare.status().index_pending
    story.claim(pending > 0, "the index update was left in the outbox")
    with open_gateway(home=home, project=PROJECT, actor="human:demo", replay=False) as gateway:
        done, again = gateway.recover(), gateway.recover()
        found = gateway.search(LESSON_QUESTION, k=1).hits
    story.claim(done.replayed >= 1 and again.replayed == 0, "recovery replayed the update once")
    story.claim(found[0].position == position, "what the killed process stored is found")
    story.tell(
        f"A process stored position {position} and was killed (kill -9) before the index knew. Recovery replayed "
        f"{done.replayed} of what was waiting, a second one {again.replayed}, and the memory is found."
    )


def die_while_indexing() -> None:
    """Remember something, say at which position, and be killed in the middle of the index update. A child's main."""
    with open_gateway(home=sys.argv[1], project=PROJECT, actor="human:demo") as gateway:
        embedder = gateway.index.embedder
        if embedder is None:
            raise click.ClickException("the demo needs an embedder; unset CORRIGENDA_EMBEDDER.")
        receipt = gateway.remember(LESSON)
        print(receipt.position, flush=True)
        vars(embedder)["embed"] = _die
        gateway.search(LESSON_QUESTION)


def _die(_: Sequence[str]) -> Vectors:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process goes on")


def _revoke(story: Story, home: Path, fixed: Receipt) -> None:
    """While one process's index still holds a vector, another revokes its memory: the ledger's word counts."""
    revision = fixed.revision_id or ""
    with open_gateway(home=home, project=PROJECT, actor="agent:reader") as reader:
        story.claim(reader.search(QUESTION, k=1).hits[0].revision_id == revision, "the correction was served before")
        reader.index.frozen = True
        with open_gateway(home=home, project=PROJECT, actor="human:demo", replay=False) as other:
            revoked = other.revoke(revision, reason="its source turned out to be forged")
        near = [item.revision for item, _ in reader.neighbours(QUESTION, k=1)]
        story.claim(near == [revision], "the index still offers the revoked revision")
        served = {hit.revision_id for hit in reader.search(QUESTION, k=5).hits}
        story.claim(bool(served) and revision not in served, "retrieval refused it")
        story.tell(f"Revoked at position {revoked.position}. The index still offers it first; retrieval refuses it.")
        _sql(home, "set_trust", revision=revision, trust="unverified")
        served = {hit.revision_id for hit in reader.search(QUESTION, k=5).hits}
        _sql(home, "set_trust", revision=revision, trust="revoked")
        story.claim(bool(served) and revision not in served, "retrieval refused it after the row was edited")
        story.tell("Its read-model row was edited back to active by SQL, as the owner: refused all the same.")


def _tamper(story: Story, home: Path, position: int) -> None:
    """Change one byte of one event behind the ledger's back, and put it back."""
    with open_bare(home=home, create=False) as bare:
        offset = bare.raw(position).index(b'"at":"') + 9
        story.claim(_refuses_its_writer(home, position, offset), "the role that serves could change no event")
        _sql(home, "flip_byte", seq=position, offset=offset)
        broken = bare.verify()
        _sql(home, "flip_byte", seq=position, offset=offset)
        mended = bare.verify()
    first = _first_bad_position(broken)
    story.claim((broken.exit_code, first) == (10, position), "verify named the changed event")
    story.tell(
        "The role that serves may change no event. As the tables' owner, with the triggers switched off, one byte was "
        f"changed by SQL: verify names position {first}, exit {broken.exit_code}."
    )
    story.claim(mended.ok, "the ledger verifies once the byte is back")
    story.tell(f"The byte was put back: all {mended.events} events verify, exit {mended.exit_code}.")


def _first_bad_position(report: Verification) -> int:
    return min(check.first_bad_position for check in report.checks.values() if check.first_bad_position is not None)


def _sql(home: Path, query: str, **params: object) -> None:
    """Do something to the tables as their owner, with the triggers switched off."""
    with open_bare(home=home, create=False) as bare, psycopg.connect(bare.database_url(role="owner")) as connection:
        connection.execute(QUERIES["switch_triggers_off"])
        connection.execute(QUERIES[query], params)


def _refuses_its_writer(home: Path, position: int, offset: int) -> bool:
    """Report whether the database refuses the role that serves to change an event."""
    with open_bare(home=home, create=False) as bare, psycopg.connect(bare.database_url(role="writer")) as connection:
        try:
            connection.execute(QUERIES["flip_byte"], {"seq": position, "offset": offset})
        except psycopg.errors.InsufficientPrivilege:
            return True
    return False


def _short(content: str | None) -> str:
    title, *rest = (content or "").splitlines()
    said = [line for line in rest if line.startswith(("Status:", "Superseded by: PEP"))]
    return "; ".join([f'"{title}"', *said])


def _next(home: Path, keep: bool) -> str:
    if not keep:
        return (
            "Try `corrigenda demo --keep` to go on with its ledger, and `corrigenda --help` to see what else there is."
        )
    return (
        f"The home stays in {home}. Go on with it:\n"
        f"      export CORRIGENDA_HOME={home} CORRIGENDA_PROJECT={PROJECT}\n"
        "      corrigenda history pep-609\n      corrigenda lineage pep-241\n      corrigenda verify"
    )


def _remove(home: Path) -> None:
    import shutil

    embedded.stop(home, remove=True)
    shutil.rmtree(home, ignore_errors=True)
