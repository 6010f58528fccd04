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
exclude_patterns = ["pictures"]

# A name in a signature or a docstring that leads nowhere is an error. These lead to no
# page of this book: type variables, aliases, types of others, what a `with` gives.
nitpicky = True
nitpick_ignore_regex = [
    ("py:class", r"(.*\.)?(T|U|K|V|V2|R|N|S|P|C|Like|T[12]|U[12])"),
    (
        "py:class",
        r"(os\.)?PathLike|(socket\.)?socket|pa\.(Schema|RecordBatch|Table)|DataFrame|SparkSession|Carrier",
    ),
    (
        "py:class",
        r"pointstamp\.(api\.scope\.Nested|runtime\.worker\._Building|logic\.process\.Process)",
    ),
    (
        "py:class",
        r"Declared|How|Path|datetime|_core\.Recording|collections\.abc\.Mapping",
    ),
    (
        "py:class",
        r"AnyStream|Build|Clock|Column|Coordinates|Origin|Paths|Schema|SourceOfRecords",
    ),
    ("py:class", r"WindowKind|pointstamp\.windows\.Session|threading\.Event"),
    ("py:class", r"(pointstamp\.)?(_core\.)?(Field|_core\.Schema)"),
    (
        "py:class",
        r"(pointstamp\.(interactive\.flow|keyed\.state)\.)?(Flow|Keeper)",
    ),
    ("py:class", r"DataflowGraph|ssl\.SSLContext"),
    ("py:class", r"Frame|OnError"),
    ("py:class", r"(pointstamp\.)?_core\.(Stream|Retention)"),
    ("py:class", r"pointstamp\.connectors\.rejecting\.E"),
    ("py:exc", r"psycopg\..*"),
    ("py:class", r"(datetime\.)?timedelta|collections\.abc\.Sequence"),
]
# `pointstamp.progress` and `pointstamp.connectors` each have a class Source.
suppress_warnings = ["ref.python"]
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

# Objects of these classes come from the package: how it makes them is not shown.
GIVEN = frozenset(
    "pointstamp." + name
    for name in (
        "Arranged",
        "ArrowStream",
        "Collection",
        "ColumnCollection",
        "KeyedStream",
        "LoopHandle",
        "WindowedStream",
        "Notificator",
        "OperatorBuilder",
        "Scope",
        "Sequencer",
        "Stream",
        "Trace",
        "Variable",
        "Worker",
        "capture.Capture",
        "keyed.process.KeyContext",
        "collections.CollectionCapture",
        "collections.ColumnCapture",
        "observability.plans.PlanView",
        "spark.Cluster",
        "spark.Epochs",
    )
)


def without_constructor(app, what, name, obj, options, signature, returns):
    """Leaves the arguments of a class's constructor out."""
    return ("", None) if what == "class" and name in GIVEN else None


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", without_constructor)
