"""Readers of foreign histories: each turns a file into a plan of acts for the service to carry out."""
