"""Launchers of our own: every job to its end, each loss a loss of that job alone, and nothing left running."""
