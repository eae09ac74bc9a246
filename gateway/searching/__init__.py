"""Answers to questions: what is near, what of it is true, and what was left out."""
