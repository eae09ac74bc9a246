"""How a text enters a memory: remember, publish, correct, supersede."""

from typing import Any

import click

from cli.acts import KINDS_NOTE, REV_NOTE, TEXT_NOTE, give_receipt
from cli.bodies import Body, needed, request_of, takes_body
from cli.context import Session, full_id, pass_session
from cli.options import Verb, read_json, read_text, writes


@click.command(
    cls=Verb,
    epilog=f'{TEXT_NOTE} The conditions of --applies are {{"match": "all" or "any", "conditions": [{{"id", "kind": '
    '"context", "field": "directory", "worktree", "projectId" or "sessionId", "value"} or {"id", "kind": "topic", '
    '"value"}, …]}.\n\n'
    '\b\nExamples:\n  corrigenda memories remember "user lives in Berlin" --tag profile --project ap\n'
    "  git log -1 --format=%B | corrigenda memories remember - --kind decision --project ap\n"
    '  corrigenda memories remember "Hamburg" --id home --predecessor home --hold',
)
@click.argument("content", metavar="TEXT", required=False, callback=read_text)
@click.option("--kind", default="fact", show_default=True, metavar="K", help=f"What sort it is: {KINDS_NOTE}.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="A tag; repeatable.")
@click.option("--confidence", metavar="C", help="0 to 1, at most six places.")
@click.option("--origin", metavar="O", help="Where it comes from: human, agent, llm_extracted or import.")
@click.option("--valid-from", metavar="TIME", help="Since when it is so in the world.")
@click.option("--valid-to", metavar="TIME", help="Until when.")
@click.option("--review-by", metavar="TIME", help="When somebody should look at it again.")
@click.option("--source", "sources", multiple=True, metavar="S", help="A source; repeatable.")
@click.option("--subject", "subjects", multiple=True, metavar="S", help="A person whom it concerns; repeatable.")
@click.option("--agent", metavar="A", help="The agent whose memory it is.")
@click.option("--user", metavar="U", help="The user whom it is about.")
@click.option("--session", "within", metavar="S", help="The session it comes from.")
@click.option("--task-family", metavar="F", help="The kind of task it serves.")
@click.option("--visibility", metavar="V", help="Who may see it: global, tenant, project, agent, user or session.")
@click.option("--applies", callback=read_json, metavar="@FILE", help="Conditions under which it is served, as JSON.")
@click.option("--institutional", callback=read_json, metavar="@FILE", help="What makes it a position or a procedure.")
@click.option("--quote", metavar="Q", help="Words of the conversation on which it rests; extracted learnings need it.")
@click.option(
    "--conversation", callback=read_text, metavar="TEXT", help="What was said, to find --quote in. It is not stored."
)
@click.option("--id", "memory_id", metavar="MEM", help="The name to keep it under.")
@click.option("--predecessor", metavar="REV", help="The head whose place it takes.")
@click.option("--hold", is_flag=True, help="Let it wait to be published.")
@takes_body
@writes(names_revision=False)
@pass_session
def remember(
    session: Session,
    body: Body | None,
    within: str | None,
    idempotency_key: str | None,
    dry_run: bool,
    **rest: Any,  # Any: the options that go to the gateway under their own names
) -> None:
    """Remember TEXT.

    It becomes a new memory; with --id the next version of one that has no head; with --predecessor, in its place. A
    learning with the origin llm_extracted needs --user, and a --quote that stands in the --conversation.
    """
    from gateway.shapes.requests import RememberRequest

    request = request_of(body, {**rest, "session": within}, RememberRequest.model_fields)
    needed(request, "content")
    session.require_project()
    with session.gateway() as gateway:
        if body is None and request["predecessor"]:
            request["predecessor"] = full_id(gateway, request["predecessor"])
        content = request.pop("content")
        receipt = gateway.remember(content, **request, idempotency_key=idempotency_key, dry_run=dry_run)
    give_receipt(session, receipt, dry_run=dry_run)


@click.command(
    cls=Verb,
    epilog="A memory stands for the one revision that it holds.\n\n"
    '\b\nExample:\n  corrigenda memories publish home --reason "confirmed by phone"',
)
@click.argument("rev")
@writes()
@pass_session
def publish(session: Session, rev: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Let REV, which was held, become active.

    It takes the place of the head that it was held to replace, if that is the head still.
    """
    with session.gateway() as gateway:
        receipt = gateway.publish(full_id(gateway, rev), dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)


@click.command(
    cls=Verb,
    epilog=f"{REV_NOTE} {TEXT_NOTE}\n\n"
    '\b\nExample:\n  corrigenda memories correct mem_01J9ZK "user lives in Hamburg" --reason "moved in May"',
)
@click.argument("rev")
@click.argument("content", metavar="TEXT", callback=read_text)
@writes()
@pass_session
def correct(session: Session, rev: str, content: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Replace REV by TEXT.

    REV must be its lineage's head; it becomes superseded, and TEXT the new head.
    """
    with session.gateway() as gateway:
        receipt = gateway.correct(full_id(gateway, rev), content, dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)


class _Supersede(Verb):
    """A verb whose `--with` takes every word up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _each_with(args))


def _each_with(args: list[str]) -> list[str]:
    """Give each text behind `--with` a `--with` of its own, as click wants it."""
    words: list[str] = []
    texts = False
    for word in args:
        if texts and words[-1] != "--with" and (word == "-" or not word.startswith("-")):
            words.append("--with")
        elif words and words[-1] != "--with":
            texts = False
        texts = texts or word == "--with"
        words.append(word)
    return words


def _read_texts(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str | None, ...]:
    from ledger.ids import is_ours, is_prefix_of_ours

    for text in value:
        if is_ours(text) or is_prefix_of_ours(text):
            raise click.BadParameter(f"{text} is an id and no text: name every REV before --with.", ctx, param)
    return tuple(read_text(ctx, param, text) for text in value)


@click.command(
    cls=_Supersede,
    epilog=f"{REV_NOTE} {TEXT_NOTE} Everything behind --with up to the next option is a TEXT. The document of --input "
    'is {"predecessors": [REV, …], "successors": [TEXT or {"content", "kind", "tags", "memory_id"}, …], "reason"}.\n\n'
    '\b\nExamples:\n  corrigenda memories supersede home flat --with "user lives in Hamburg, in a flat"\n'
    '  corrigenda memories supersede pets --with "user has a cat" "user had a dog" --reason "two facts"',
)
@click.argument("predecessors", metavar="REV…", nargs=-1)
@click.option(
    "--with", "successors", multiple=True, metavar="TEXT…", callback=_read_texts, help="What takes their place."
)
@takes_body
@writes(whose="the first REV's memory's")
@pass_session
def supersede(
    session: Session,
    body: Body | None,
    predecessors: tuple[str, ...],
    successors: tuple[str, ...],
    reason: str | None,
    dry_run: bool,
    **how: Any,  # Any: as in `remember`
) -> None:
    """Let TEXTs take the place of REVs: a merge, a split, or both.

    The first TEXT goes on with the first REV's memory, each further one begins a memory. All of it is done, or nothing.
    """
    from gateway.shapes.requests import SupersedeRequest

    words = {"predecessors": predecessors, "successors": successors, "reason": reason}
    request = request_of(body, words, SupersedeRequest.model_fields)
    needed(request, "predecessors", "successors")
    with session.gateway() as gateway:
        olds = request["predecessors"] if body is not None else [full_id(gateway, rev) for rev in predecessors]
        receipt = gateway.supersede(olds, request["successors"], reason=request.get("reason"), dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)
