"""How Sphinx makes the site. The pages are put together by tools/docs_site.py, which starts it."""

project = "facula"
author = "The Facula authors"
copyright = author
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "facula"
html_show_copyright = False
html_show_sphinx = False
add_module_names = False
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 88
exclude_patterns = ["docs/README.md", "examples/data/*"]
