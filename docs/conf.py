"""How the documentation is built: ``sphinx-build -W docs site``."""

from __future__ import annotations

import sys
import tomllib
from importlib import import_module
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

project = "odefit"
author = "The odefit developers"
copyright = author
release = version = installed_version("odefit")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# The scripts in examples/ are run, and an error in one of them is an error of the build. Their
# pages are regenerated each time and are not committed.
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))
reference_pages = import_module("docs.reference_pages")
reference_pages.write()
exclude_patterns = ["modules.md"]  # for developers, who read it beside the source

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples" / name) for name in ("studies", "figures")],
    "gallery_dirs": ["worked-studies", "gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("gallery.figures",),
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"Plot|Figure|function|NoneType",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1000,
    "remove_config_comments": True,
    "copyfile_regex": r"GALLERY_HEADER\.rst",
    "write_computation_times": False,
    "thumbnail_size": (480, 336),
    "download_all_examples": False,
}

# Pages are Markdown that a plain viewer shows as well: links lead to files and headings, notes are
# those of GitHub.
myst_enable_extensions = ["alert", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
default_role = "literal"  # `name` in a docstring is code
pygments_style = "tango"

# Docstrings have the sections of numpydoc.
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
suppress_warnings = ["ref.python"]  # a name alone that several classes have leads nowhere
add_module_names = False
toc_object_entries_show_parents = "hide"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_context = {"default_mode": "auto"}  # light or dark, by the reader's setting
html_theme = "pydata_sphinx_theme"
html_title = "odefit"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars: dict[str, list[str]] = {"tutorial": []}  # it has no pages below it
html_copy_source = False
html_show_sourcelink = False
html_theme_options: dict[str, Any] = {
    "logo": {"text": "odefit"},
    "header_links_before_dropdown": 7,
    "navigation_depth": 2,
    "show_toc_level": 2,
    "show_prev_next": True,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}


def resolve_by_public_name(
    app: Sphinx, env: BuildEnvironment, node: nodes.Element, content: nodes.Element
) -> nodes.Element | None:
    """Link an annotation to the public name of its object.

    A signature names ``odefit.problem.problem.Problem``; the page of the interface has
    ``odefit.Problem``.
    """
    target = str(node.get("reftarget", ""))
    if node.get("refdomain") != "py":
        return None
    domain = env.domains.python_domain
    last = target.rpartition(".")[2]
    found = [name for name, entry in domain.objects.items() if name.rpartition(".")[2] == last]
    classes = [name for name in found if domain.objects[name].objtype in {"class", "exception"}]
    if len(classes) != 1:
        return None
    return domain.resolve_xref(
        env, str(node["refdoc"]), app.builder, "class", classes[0], node, content
    )


SEARCH_WORDS: dict[str, list[str]] = tomllib.loads(
    (HERE / "search_words.toml").read_text(encoding="utf-8")
)


def add_search_words(app: Sphinx, doctree: nodes.document) -> None:
    """Make the search find a section by the words of users.

    They become entries of an index directive, which the search ranks above the text of pages.
    """
    for place, words in SEARCH_WORDS.items():
        page, _, anchor = place.partition("#")
        if page == app.env.docname:
            entries = [("single", word, anchor, "main", None) for word in words]
            doctree.insert(0, addnodes.index(entries=entries))


def setup(app: Sphinx) -> None:
    """Connect the additions of this file to Sphinx."""
    app.add_lexer("csv", TextLexer)
    app.connect("missing-reference", resolve_by_public_name)
    app.connect("doctree-read", add_search_words)
