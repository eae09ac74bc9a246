"""From a wish to an append: read, decide, hand to the committer, and say what came of it."""
