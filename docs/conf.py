"""How Sphinx builds these pages: `make docs`. It needs no network; `make docs-links` asks the servers behind links."""

project = "ffm"
copyright = "the authors of ffm"

extensions = ["myst_parser"]
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]

html_theme = "furo"
html_title = "ffm"
html_copy_source = False
html_show_sphinx = False

linkcheck_timeout = 20
linkcheck_retries = 2
