"""Scorers for regression cases. Pure: a text that was put out and what it should hold, in; yes or no, out."""


def contains(output: str, expected: str, *, case_sensitive: bool = False) -> bool:
    """Report whether `output` holds `expected`, blind to case unless asked otherwise.

    An empty `expected` means that there should be nothing: only an output without any text passes.
    """
    if not expected.strip():
        return not output.strip()
    if case_sensitive:
        return expected in output
    return expected.casefold() in output.casefold()
