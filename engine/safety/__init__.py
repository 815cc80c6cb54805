"""What the engine will never do, and how each promise is checked: the predicates of the boundaries and the hot-path
proof."""
