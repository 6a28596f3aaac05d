"""Settings of Sphinx for the site of the documents; ``build.py`` runs Sphinx."""

import tomllib
from pathlib import Path

_PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "Roost"
author = _PROJECT["authors"][0]["name"]
release = version = _PROJECT["version"]
root_doc = "index"

extensions = ["myst_parser"]
# Headings have the same anchors as in rendered Markdown elsewhere, at every level.
myst_heading_anchors = 6
# Shell examples contain JSON and output, so Sphinx cannot highlight every block.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"Roost {release}"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
# Messages on the pages are quotations, character by character.
smartquotes = False
