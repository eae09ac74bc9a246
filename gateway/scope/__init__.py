"""What a word means, and to whom: names, scopes, moments, who sees what and who may do what."""
