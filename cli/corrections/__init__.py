"""`corrigenda corrections`: what agents put out, what was right, and why; each verb is one call of the gateway.

A verb translates words into that call and its answer into words; it decides nothing.
"""

import click

from cli.options import LazyNoun

_VERBS = {
    "record": ("cli.corrections.acting", "record", "Record what an agent put out and what was right."),
    "confirm": ("cli.corrections.acting", "confirm", "Vouch for what an agent reported."),
    "supersede": ("cli.corrections.acting", "supersede", "Replace a correction that was wrong itself."),
    "revoke": ("cli.corrections.acting", "revoke", "Withdraw a correction, with a reason."),
    "search": ("cli.corrections.recalling", "search", "Find corrections near QUERY."),
    "render": ("cli.corrections.recalling", "render", "Print the block of past corrections for a prompt."),
    "show": ("cli.corrections.reading", "show", "Show one correction."),
    "list": ("cli.corrections.reading", "list_", "List corrections, oldest first."),
    "stats": ("cli.corrections.reading", "stats", "Count corrections by entity, field, agent and period."),
    "eval-cases": ("cli.corrections.reading", "eval_cases", "Print regression cases as JSON lines."),
}


@click.group("corrections", cls=LazyNoun, lazy=_VERBS)
def corrections() -> None:
    """Record, confirm, supersede, revoke, find, render and count corrections."""
