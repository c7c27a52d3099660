"""Builds the documentation as a site under target/site, and checks it.

Fails on a broken link or anchor, on a page that no navigation reaches, and on a script or a style from
elsewhere. It also fails on Markdown that GitHub renders and the site does not. The last line counts the
pages.
"""

import html.parser
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "target" / "site"
# Searches a site that is opened as files. The theme's own script for this lies on a server.
SEARCH_WORKER = "search-worker.js"
THEIR_SEARCH_WORKER = "https://unpkg.com/iframe-worker/shim"
# A list item or a table row in the middle of a paragraph: a list or table that was not recognised.
UNRENDERED = re.compile(r"^\s*(?:[-*] |\d+\. |\|.*\|$)", re.MULTILINE)

FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
# A block of a list item that GitHub takes into the item, and the site does not.
SHALLOW = re.compile(r"^\n( {1,3}[^ \n].*)$", re.MULTILINE)


class Page(html.parser.HTMLParser):
    """The links, anchors and unrendered blocks of a page."""

    def __init__(self, text: str) -> None:
        """Read the page."""
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.navigated: set[str] = set()
        self.unrendered: list[str] = []
        self._inside: list[str] = []
        self._paragraph: list[str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note anchors, links, and the begin of navigation and paragraphs."""
        values = {key: value or "" for key, value in attrs}
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag in {"nav", "article"}:
            self._inside.append(tag)
        if tag == "p":
            self._paragraph = []
        if tag == "script" or values.get("rel") == "stylesheet":
            self.loaded.append(values.get("src") or values.get("href", ""))
        for link in (values.get("href") if tag == "a" else None, values.get("src")):
            if link is None:
                continue
            self.links.append(link)
            if tag == "a" and "nav" in self._inside:
                self.navigated.add(link)

    def handle_endtag(self, tag: str) -> None:
        """Note the end of navigation and paragraphs."""
        if self._inside and tag == self._inside[-1]:
            self._inside.pop()
        if tag == "p" and self._paragraph is not None:
            text = "".join(self._paragraph)
            if "article" in self._inside and (match := UNRENDERED.search(text)):
                self.unrendered.append(match[0].strip() + text[match.end() : match.end() + 60])
            self._paragraph = None

    def handle_data(self, data: str) -> None:
        """Collect the text of a paragraph."""
        if self._paragraph is not None:
            self._paragraph.append(data)


def is_outside(link: str) -> bool:
    """Return whether a link leaves the site."""
    return bool(re.match(r"[a-z][a-z+.-]*:|//", link))


def resolve(page: Path, link: str) -> tuple[Path, str]:
    """Return the file and the anchor that a link of a page leads to."""
    name, _, anchor = link.partition("#")
    target = (page.parent / unquote(name.partition("?")[0])).resolve() if name else page
    return (target / "index.html" if target.is_dir() else target), unquote(anchor)


def faults(site: Path, sources: set[Path]) -> list[str]:
    """Return what is wrong with a built site; `sources` are the pages that it must have."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    found = []
    reached: set[Path] = set()
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name}: loads {link} from elsewhere" for link in page.loaded if is_outside(link)]
        found += [f"{name}: not a list or a table on the site: {text!r}" for text in page.unrendered]
        for link in dict.fromkeys(link for link in page.links if not is_outside(link)):
            target, anchor = resolve(path, link)
            if not target.is_file():
                found.append(f"{name}: link to {link}: there is no such file")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                found.append(f"{name}: link to {link}: the page has no such anchor")
        # The navigation of the first page shows every page.
        if path == site / "index.html":
            reached = {resolve(path, link)[0] for link in page.navigated if not is_outside(link)}
    for source in sorted(sources):
        path = site / source.with_suffix(".html")
        path = path.with_name("index.html") if source.name == "README.md" else path
        if path not in pages:
            found.append(f"docs/{source}: the site has no such page")
        elif path not in reached:
            found.append(f"docs/{source}: no navigation reaches it; add it to `nav` of zensical.toml")
    return found


def build() -> bool:
    """Build the site, and return whether that went well."""
    command = (sys.executable, "-m", "zensical", "build", "--strict", "--clean")
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        return False
    for path in SITE.rglob("*.html"):
        depth = len(path.relative_to(SITE).parts) - 1
        text = path.read_text()
        path.write_text(text.replace(THEIR_SEARCH_WORKER, "../" * depth + SEARCH_WORKER))
    return True


def main() -> int:
    """Build and check the site."""
    if not build():
        return 1
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    found = [
        f"docs/{source}: indent this by four spaces: {text.strip()[:60]!r}"
        for source in sorted(sources)
        for text in SHALLOW.findall(FENCE.sub("", (ROOT / "docs" / source).read_text()))
    ]
    found += faults(SITE, sources)
    for fault in found:
        print(fault)
    print(f"{len(sources)} pages, {len(found)} faults: target/site/index.html")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
