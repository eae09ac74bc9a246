"""What retrieval is worth: of the memories that a question brings up, whether the one that answers it comes first.

The pairs are fixed, and forty of them are held back: whatever is chosen by figures is chosen by the others' figures.
"""
