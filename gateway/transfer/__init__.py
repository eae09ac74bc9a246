"""Histories from one ledger to another: written as lines, read again, and decided anew where they arrive."""
