"""Every answer as text for people, by topic: a reply in, text out."""
