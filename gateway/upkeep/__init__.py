"""What keeps an installation sound: what must answer when the ledger is broken, and what is said of its parts."""
