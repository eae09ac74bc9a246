"""What an outsider is given to check: bundles, checkpoints, the anchor beside the ledger."""
