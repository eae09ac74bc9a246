"""A verified history as people read it. Pure: states, texts and times in, what is said about them out."""
