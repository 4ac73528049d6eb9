"""The site of fairopt: `make docs` builds it into build/docs and runs every example; warnings are errors."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "_extensions"))

# Examples call the commands of this environment, and get tables of a width that a page has room for.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ["COLUMNS"] = "108"
# A kernel asks for colours, which are no text; nobody's own settings come in.
SETTINGS = ROOT / "build" / "docs-ipython"
STARTUP = SETTINGS / "profile_default" / "startup" / "plain.py"
os.environ["IPYTHONDIR"] = str(SETTINGS)

from freshness import digest  # noqa: E402

project = "fairopt"
author = copyright = "The fairopt developers"
release = version = installed("fairopt")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
    "plain_docstrings",
    "commands",
    "findings",
    "format_words",
    "installed_things",
    "schemas",
    "whole_outputs",
]
exclude_patterns = ["templates", "_generated/pictures/*.ipynb", "_generated/pictures/*.py", "**/.ipynb_checkpoints"]
templates_path = ["_templates"]
nitpicky = True
# Links go to pages of this site only: what belongs to Python, NumPy and others is named without one, since the build
# must work where there is no network. Types in signatures may be private or have no page.
nitpick_ignore_regex = [
    ("py:.*", r"(?!fairopt\.).*"),
    ("py:obj", r".*"),
    ("py:(class|data|exc)", r"fairopt\..*\.[A-Z_]+\w*"),
]

# Pages and notebooks run once for each state of the code: what is kept is kept under the digest of the code, so that a
# warm build is quick and a page that no longer runs cannot pass.
CODE = digest(ROOT)
KEPT = ROOT / "build" / "docs-cache"
nb_execution_mode = "cache"
nb_execution_cache_path = str(KEPT / CODE)
nb_execution_in_temp = True  # what an example writes is thrown away
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_excludepatterns = ["_generated/*"]
nb_merge_streams = True
nb_render_markdown_format = "myst"
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_imported_members = False
autosummary_ignore_module_all = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Number")}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries = False

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "unsrt"

sphinx_gallery_conf = {
    "examples_dirs": "pictures",
    "gallery_dirs": "_generated/pictures",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__",
    "image_scrapers": ("matplotlib", "returned_figures.returned_figure"),
    "capture_repr": (),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 3600,
    "remove_config_comments": True,
    "write_computation_times": False,
    "thumbnail_size": (480, 336),
}
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings hold objects, so that the settings count as changed

linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_ignore = [r"https://fairopt\.invalid/.*"]

html_theme = "pydata_sphinx_theme"
html_title = "fairopt"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [(name, {"defer": "defer"}) for name in ("findings.js", "tables.js")]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "fairopt"},
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "findings": [], "comparison": []}  # pages without pages below them
html_context = {"default_mode": "auto"}
copybutton_prompt_text = r">>> |\.\.\. |\$ |> ?"
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

PLAIN = """
import os
for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR"):
    os.environ.pop(name, None)
"""


def prepare(app: Any, config: Any) -> None:
    """Write the kernel's settings, and drop what was made or kept for another state of the code."""
    STARTUP.parent.mkdir(parents=True, exist_ok=True)
    STARTUP.write_text(PLAIN, encoding="utf-8")
    for kept in KEPT.glob("*"):
        if kept.name != CODE:
            shutil.rmtree(kept)
    made = HERE / "_generated"  # pages of the reference, and pictures, which are made anew for new scripts only
    if not (made / CODE).exists():
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        (made / CODE).touch()


def setup(app: Any) -> None:
    """Register with Sphinx; before other extensions look at the settings."""
    app.connect("config-inited", prepare, priority=1)
