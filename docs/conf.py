"""How Sphinx builds the book: `make docs`.

Nothing is fetched from the network, when it is built or when it is read.
"""

from importlib.metadata import version as installed_version

project = "pointstamp"
author = "the pointstamp authors"
project_copyright = "the pointstamp authors"
release = version = installed_version("pointstamp")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["design", "pictures"]
nitpicky = False
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The reference: docstrings as they stand, in the order in which the sources have them.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
maximum_signature_line_length = 90
autodoc_default_options = {"members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
add_module_names = False
default_role = "code"

html_theme = "furo"
html_title = "pointstamp"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_selector = "div.highlight-python pre, div.highlight-sh pre"
