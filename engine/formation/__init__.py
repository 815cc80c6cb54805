"""Formation: a pack earns its seal by a course that is run twice on the real engine and measured by eight gates."""
