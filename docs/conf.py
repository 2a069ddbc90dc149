"""Sphinx configuration. Nothing here asks a network; warnings are errors (``-W``)."""

import os
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx_gallery.sorting import ExplicitOrder

# Before anything imports the hub's client, which reads it once.
os.environ["HF_HUB_OFFLINE"] = "1"

import skellipsoid

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "skellipsoid"
author = "The skellipsoid developers"
copyright = author
version = release = skellipsoid.__version__

extensions = [
    "repository",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",  # formulas without a network
    "sphinx_copybutton",
    "sphinx_design",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "generated/backreferences"]

# References to this package must resolve. Those to other packages become links by the rule that their pages follow:
# their inventories, which intersphinx reads, are on the network, and a build asks no network.
nitpicky = True
PAGES_OF_OTHERS = {
    "matplotlib": "https://matplotlib.org/stable/api/_as_gen/{name}.html",
    "numpy": "https://numpy.org/doc/stable/reference/generated/{name}.html",
    "pandas": "https://pandas.pydata.org/docs/reference/api/{name}.html",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{name}.html",
    "sentence_transformers": "https://www.sbert.net/docs/package_reference/index.html",
    "sklearn": "https://scikit-learn.org/stable/modules/generated/{name}.html",
    "torch": "https://docs.pytorch.org/docs/stable/generated/{name}.html",
}

toc_object_entries_show_parents = "hide"  # "fit", not "EllipsoidOpenSetClassifier.fit", in a narrow column
autodoc_typehints = "none"  # numpydoc's Parameters say it in words
autosummary_generate = True
autosummary_ignore_module_all = False  # the page of a module lists its public names
#: Parameters of long lists that users change, in this order; the others follow as "Other Parameters".
OFTEN_CHANGED = {
    "skellipsoid.EllipsoidOpenSetClassifier": [
        "open_share",
        "known_shift",
        "open_label",
        "beta",
        "alpha",
        "random_state",
    ],
    "skellipsoid.SupConTextEncoder": ["model_name", "finetune", "open_label", "device", "random_state"],
}
numpydoc_show_class_members = False  # the template of classes lists them

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "ignore_pattern": r"serve_",  # shown, and explained, in the guide
    # From easy to hard.
    "within_subsection_order": ExplicitOrder(
        [
            f"plot_{name}.py"
            for name in (
                "three_answers",
                "ellipsoids_2d",
                "text_pipeline",
                "tutorial",
                "digits",
                "displays",
                "held_out",
                "size",
                "beta_alpha",
                "first_hour",
                "traffic",
                "discovery",
            )
        ]
    ),
    "doc_module": "skellipsoid",
    "reset_modules": ("matplotlib", "seaborn", "gallery.large_letters", "gallery.warnings_are_errors"),
    "reset_modules_order": "both",
    "backreferences_dir": "generated/backreferences",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "image_srcset": ["2x"],
    "write_computation_times": False,  # its pages ask another host for their scripts
}

html_theme = "pydata_sphinx_theme"
html_title = f"skellipsoid {version}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_favicon = "_static/icon.svg"
html_context = {"default_mode": "auto"}
html_css_files = ["pages.css"]
copybutton_exclude = ".linenos, .gp, .go"  # prompts and outputs stay behind
html_theme_options = {"secondary_sidebar_items": ["page-toc"], "show_prev_next": True, "show_nav_level": 2}
html_sidebars = {"install": [], "cite": [], "glossary": [], "changes": []}


def write_changes(app):
    """Turn ``CHANGES.md``, which is headings, lists and inline code, into the page that ``changes.rst`` includes."""
    text = (HERE.parent / "CHANGES.md").read_text(encoding="utf-8")
    text = re.sub(r"^# .*\n", "", text)  # the page has a title of its own
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text)
    for marks, underline in (("##", "-"), ("###", "~")):
        text = re.sub(
            rf"^{marks} (.+)$", lambda found, u=underline: f"{found[1]}\n{u * len(found[1])}", text, flags=re.MULTILINE
        )
    page = HERE / "generated" / "changes.inc"
    page.parent.mkdir(exist_ok=True)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def skip_foreign(app, what, name, obj, skip, options):
    """Leave out scikit-learn's own methods, which refer to its guide, and the fields of named tuples.

    numpydoc's Attributes describe those fields better than autodoc does.
    """
    foreign = re.fullmatch(r"set_\w+_request|get_metadata_routing|set_output", name)
    return True if foreign or type(obj).__name__ == "_tuplegetter" else None


def group_parameters(app, what, name, obj, options, lines):
    """Show the parameters first that users often change. The docstring keeps the order of the signature."""
    if what != "class" or name not in OFTEN_CHANGED:
        return
    first = lines.index("Parameters") + 2
    end = next(i for i in range(first, len(lines) - 1) if set(lines[i + 1]) == {"-"})
    entries = {}
    for line in lines[first:end]:
        if line and not line.startswith(" "):
            entry = entries.setdefault(line.split(" :")[0], [])
        entry.append(line)
    often = [key for key in OFTEN_CHANGED[name] if key in entries]
    others = [key for key in entries if key not in often]
    heading = ["", "Other Parameters", "-" * len("Other Parameters")]
    often, others = ([line for key in keys for line in entries[key]] for keys in (often, others))
    lines[first:end] = [*often, *heading, *others, ""]


def link_others(app, env, node, content):
    """Link a name of another package to its page; a method has that of its class."""
    name = node.get("reftarget", "")
    page = PAGES_OF_OTHERS.get(name.split(".")[0])
    if node.get("refdomain") != "py" or page is None:
        return None
    if node["reftype"] in {"meth", "attr"}:
        name = name.rpartition(".")[0]
    return nodes.reference("", "", content, refuri=page.format(name=name), internal=False)


def setup(app):
    app.connect("missing-reference", link_others)
    app.connect("builder-inited", write_changes)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", group_parameters, priority=100)  # before numpydoc reads it
