"""`corrigenda memories`: the acts on memories, each one call of the gateway, in modules named as the gateway's.

A verb translates words into that call and its answer into words; it decides nothing.
"""

import click

from cli.options import LazyNoun

_VERBS = {
    "remember": ("cli.memories.beginning", "remember", "Remember TEXT."),
    "publish": ("cli.memories.beginning", "publish", "Let REV, which was held, become active."),
    "correct": ("cli.memories.beginning", "correct", "Replace REV by TEXT."),
    "supersede": (
        "cli.memories.beginning",
        "supersede",
        "Let TEXTs take the place of REVs: a merge, a split, or both.",
    ),
    "patch": ("cli.memories.mending", "patch", "Mend the metadata of REV that was always wrong."),
    "retire": ("cli.memories.withdrawing", "retire", "Withdraw REV as knowledge that no longer holds."),
    "forget": ("cli.memories.withdrawing", "forget", "Withdraw REV from view, and from being learned again."),
    "revoke": ("cli.memories.withdrawing", "revoke", "Revoke REV, with a reason."),
    "restore": ("cli.memories.withdrawing", "restore", "Undo the withdrawal of REV."),
    "contest": ("cli.memories.disputing", "contest", "State that REV and OTHER contradict each other."),
    "promote": ("cli.memories.disputing", "promote", "Let the contested REV win."),
    "reject": ("cli.memories.disputing", "reject", "Turn down the held or contested REV."),
    "admit": ("cli.memories.disputing", "admit", "Vouch, with a reason, for REV of somebody else."),
    "prune": ("cli.memories.pruning", "prune", "Withdraw old learnings that nobody vouched for."),
    "link": ("cli.memories.linking", "link", "State that memory NEW supersedes memory OLD."),
    "unlink": ("cli.memories.linking", "unlink", "Withdraw, with a reason, that NEW supersedes OLD."),
    "list": ("cli.memories.listing", "list_", "List the project's memories, oldest first."),
    "show": ("cli.memories.listing", "show", "Show REV."),
    "search": ("cli.memories.finding", "search", "Find memories near QUERY."),
}


@click.group("memories", cls=LazyNoun, lazy=_VERBS)
def memories() -> None:
    """Remember, correct, withdraw, dispute, link and search memories."""
