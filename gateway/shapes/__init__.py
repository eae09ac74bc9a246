"""The shapes of what is asked and answered: requests as they are checked, answers, positions, cursors."""
