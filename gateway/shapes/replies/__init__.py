"""The shapes of every answer, the same on all surfaces: a surface only renders them.

Plain frozen structs: lists are tuples, and what does not apply is None.
"""
