"""What each search saw, chose and left out: recorded, read again, and swept when it is old."""
