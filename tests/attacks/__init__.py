"""One table of hostile rows for each trust boundary; `python -m tests.attacks.report` runs and counts them all."""
