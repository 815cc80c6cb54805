"""Generation: what a prompt asks, which steps are admissible, the walk itself, and the sentences it supports."""
