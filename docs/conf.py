"""Sphinx configuration: Markdown through MyST, strict (`-W`)."""

project = "corefield"
author = "The corefield developers"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "corefield"
