"""The documents as a site: every page is in its navigation, and it builds without a warning."""

import os
import re
import subprocess
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from roost import __version__
from tests.docs.documents import DOCUMENTS, ROOT, name

_PYTHON = ROOT / ".cache" / "docs" / "bin" / "python"
needs_generator = pytest.mark.skipif(not _PYTHON.exists(), reason="no generator of the site: run `make docs`")
INDEX = ROOT / "docs" / "index.md"
# Pages of a folder are reached from its README.
SINGLE = [path for path in DOCUMENTS if path.parent in {ROOT, ROOT / "docs", ROOT / "docs" / "how-to"}]


class Page(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.loads, self.links, self.anchors = set(), set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        """Collect the addresses and the anchor of a tag."""
        values = dict(attributes)
        if "id" in values:
            self.anchors.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        elif tag in {"script", "img", "link", "source"}:
            self.loads |= {values[each] for each in ("src", "href") if each in values}


def build(output, *, root=ROOT):
    """Run the builder."""
    command = [_PYTHON, ROOT / "docs" / "site" / "build.py", "--root", root, "--output", output]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", [path for path in SINGLE if path != INDEX], ids=name)
def test_page_is_in_the_lists_of_the_index(path):
    items = re.findall(r"^\* \[[^\]]+\]\(([^)#]+)\)", INDEX.read_text(encoding="utf-8"), re.MULTILINE)
    assert os.path.relpath(path, INDEX.parent) in items


# One test, because each process that runs one of several would build the site.
@pytest.mark.long
@needs_generator
def test_site_has_every_document_with_valid_links_and_needs_no_network(tmp_path):
    site = tmp_path / "site"
    result = build(site)
    assert (result.returncode, result.stderr) == (0, "")
    pages = {path: Page(path) for path in site.rglob("*.html")}
    places = {ROOT / "README.md": "what-is-roost", ROOT / "CHANGELOG.md": "changelog"}
    stems = [places.get(path) or path.relative_to(ROOT / "docs").with_suffix("") for path in DOCUMENTS]
    assert [stem for stem in stems if site / f"{stem}.html" not in pages] == []
    assert f"Roost {__version__}" in (site / "index.html").read_text(encoding="utf-8")
    # The index of the search is a script, so a browser loads it from a file too.
    assert (site / "searchindex.js").read_text(encoding="utf-8").startswith("Search.setIndex(")
    assert [address for page in pages.values() for address in page.loads if urlsplit(address).netloc] == []
    links = [(path, link) for path, page in pages.items() for link in page.links]
    assert [(path.name, link) for path, link in links if leads_nowhere(path, link, pages)] == []


def leads_nowhere(path, link, pages):
    """Return whether a link has no target on the site."""
    parts = urlsplit(link)
    if parts.netloc:
        return False
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target not in pages:
        return not target.exists()
    return bool(parts.fragment) and unquote(parts.fragment) not in pages[target].anchors


@pytest.mark.long
@needs_generator
def test_missing_targets_fail_the_build_and_keep_the_old_site(tmp_path):
    root, site = tmp_path / "root", tmp_path / "site"
    (root / "docs").mkdir(parents=True)
    site.mkdir()
    (site / "index.html").write_text("old", encoding="utf-8")
    for file in ("README.md", "CHANGELOG.md", "docs/unlisted.md"):
        (root / file).write_text("# Page\n", encoding="utf-8")
    broken = "[a](no-page.md) [b](../README.md#no-heading) ![c](no-picture.svg)"
    lists = "## Pages\n\n* [A](../README.md)\n* [B](../CHANGELOG.md)\n"
    (root / "docs" / "index.md").write_text(f"# Index\n\n{broken}\n\n{lists}", encoding="utf-8")
    result = build(site, root=root)
    assert result.returncode == 1
    wanted = ["no-page.md", "no-heading", "no-picture.svg", "unlisted.md"]
    assert [each for each in wanted if each not in result.stderr] == []
    assert (site / "index.html").read_text(encoding="utf-8") == "old"
