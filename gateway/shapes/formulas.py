"""What spreadsheets take for a formula: the one rule for every CSV that is written here."""

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_SKIPPED = ("\t", "\r", "\n")  # what some spreadsheets skip before a formula


def guarded(text: str) -> str:
    """Return a text that begins no formula: behind a quote, if it would be one."""
    is_formula = text.startswith(_SKIPPED) or text.lstrip().startswith(_FORMULA)
    return f"'{text}" if is_formula else text
