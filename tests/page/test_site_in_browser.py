"""The documentation's site in a real browser, opened as files: its search finds pages without a network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import website
from browser import Browser

# The results of the search stand in a shadow tree; a worker finds them.
FOUND = """new Promise(done => {
  const until = Date.now() + 60000;
  const look = () => {
    const hosts = [...document.querySelectorAll("*")].filter(node => node.shadowRoot);
    const links = hosts.flatMap(node => [...node.shadowRoot.querySelectorAll("a")]).map(link => link.href);
    if (links.length > 0 || Date.now() > until) { done(links); } else { setTimeout(look, 50); }
  };
  look();
})"""
FOCUSED = """new Promise(done => {
  const until = Date.now() + 60000;
  const look = () => {
    const focus = document.activeElement?.shadowRoot?.activeElement;
    if (focus?.tagName === "INPUT" || Date.now() > until) { done(focus?.tagName ?? ""); }
    else { setTimeout(look, 50); }
  };
  look();
})"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert website.build()
    running = Browser(tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


@pytest.mark.parametrize(
    ("start", "query", "expected"),
    [
        ("index.html", "incast", "incast.html"),
        ("howto/tune.html", "barrel shifter", "networks.html"),
    ],
)
def test_a_query_finds_a_page(browser: Browser, start: str, query: str, expected: str) -> None:
    browser.show(website.SITE / start, "desk")
    browser.evaluate("document.querySelector('button.md-search__button').click()")
    assert browser.evaluate(FOCUSED) == "INPUT"
    browser.call("Input.insertText", text=query)
    found = browser.evaluate(FOUND)
    pages = [Path(link.removeprefix("file://").partition("?")[0].partition("#")[0]) for link in found]
    assert website.SITE / expected in pages, found
    assert all(page.is_file() for page in pages), found
    assert browser.complaints() == []
    outside = [address for address in browser.requested() if not address.startswith(("file:", "data:"))]
    assert outside == []
