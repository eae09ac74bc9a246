"""Every answer about what is known by name: one memory, a list, a chain, a log, evidence."""
