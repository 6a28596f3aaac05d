"""Build the documents as a static site: ``python docs/site/build.py [--root FOLDER] [--output FOLDER]``.

``docs/index.md`` is the front page, and its lists are the navigation. The site contains ``README.md`` and
``CHANGELOG.md`` of the root too, so the pages are first copied into one folder. A warning of Sphinx is an error: a link
or an image without a target, or a page outside the navigation. The old site stays until the new one is complete.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import build_main

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
# The pages outside of docs/, and their places on the site.
_ROOT_PAGES = {"README.md": "what-is-roost.md", "CHANGELOG.md": "changelog.md"}
_BLOCK = re.compile(r"^(```.*?^```$)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
_ITEM = re.compile(r"^\* \[([^\]]+)\]\(([^)#]+)\)", re.MULTILINE)


def main() -> int:
    """Build the site; return 0, or 1 after warnings or errors."""
    parser = argparse.ArgumentParser(description="Build the documents as a site.")
    parser.add_argument("--root", type=Path, default=_ROOT, help="the folder with README.md and docs/")
    parser.add_argument("--output", type=Path, default=_ROOT / "build" / "site", help="the folder of the site")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="roost-site-") as folder:
        pages, site = Path(folder) / "pages", Path(folder) / "site"
        copy_pages(options.root.resolve(), pages)
        flags = ("-q", "-W", "--keep-going", "-j", "auto", "-c", str(_HERE), "-d", str(Path(folder) / "cache"))
        if build_main([*flags, "-b", "html", str(pages), str(site)]) != 0:
            return 1
        shutil.rmtree(options.output, ignore_errors=True)
        options.output.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(site, options.output)
    print(f"open {options.output / 'index.html'}")
    return 0


def copy_pages(root: Path, folder: Path) -> None:
    """Copy the documents of a root into a folder, with links for their places on the site."""
    documents = root / "docs"
    shutil.copytree(documents, folder, ignore=lambda at, _: ["site"] if Path(at) == documents else [])
    sources = {folder / path.relative_to(documents): path for path in documents.rglob("*.md")}
    sources |= {folder / place: root / name for name, place in _ROOT_PAGES.items()}
    for place, source in sources.items():
        page = place.relative_to(folder)
        text = _move_links(source.read_text(encoding="utf-8"), source=source, page=page, root=root)
        if page.name in {"index.md", "README.md"}:
            text += _navigation(text) if page.name == "index.md" else _children(place)
        place.write_text(text, encoding="utf-8")


def _move_links(text: str, *, source: Path, page: Path, root: Path) -> str:
    """Return the text of a page with links for its place on the site.

    A link to a file outside the site becomes plain text. A link without a target stays, so that Sphinx reports it.
    """

    def move(link: re.Match[str]) -> str:
        mark, label, target = link.groups()
        path, separator, heading = target.partition("#")
        file = (source.parent / path).resolve()
        if not path or ":" in path or not file.exists():
            return link[0]
        place = _place(file.relative_to(root))
        return label if place is None else f"{mark}[{label}]({os.path.relpath(place, page.parent)}{separator}{heading})"

    parts = _BLOCK.split(text)
    # The pattern has one group, so every second part is a block.
    return "".join(part if at % 2 else _LINK.sub(move, part) for at, part in enumerate(parts))


def _place(file: Path) -> Path | None:
    """Return the place of a file on the site, relative to its top; None if it is outside the site."""
    if file.parts[0] == "docs":
        return Path(*file.parts[1:])
    return Path(_ROOT_PAGES[str(file)]) if str(file) in _ROOT_PAGES else None


def _navigation(index: str) -> str:
    """Return one table of contents per section of the front page that has a list of pages."""
    return "".join(
        _contents([f"{label} <{page}>" for label, page in _ITEM.findall(body)], f":caption: {title}\n")
        for title, body in _SECTION.findall(index)
        if _ITEM.search(body)
    )


def _children(readme: Path) -> str:
    """Return the table of contents of a folder."""
    return _contents(sorted(path.name for path in readme.parent.glob("*.md") if path != readme))


def _contents(entries: list[str], options: str = "") -> str:
    lines = "\n".join(entries)
    return f"\n```{{toctree}}\n:hidden:\n{options}\n{lines}\n```\n"


if __name__ == "__main__":
    sys.exit(main())
