"""The measurements behind the figures in docs/BENCHMARKS.md: never shipped, never a timed test.

`python -m benchmarks.peers` fetches the peers into an environment of their own, `python -m benchmarks.append` measures
them and us in one run on one PostgreSQL.
"""
