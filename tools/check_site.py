# SPDX-License-Identifier: Apache-2.0
"""Checks the built site (build/site): every link and anchor leads somewhere, nothing comes from another host, and a
newcomer's five tasks are within two clicks of the first page."""
import html.parser
import pathlib
import sys
import urllib.parse

SITE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/site").resolve()
TASKS = {"install": "docs/install.html", "chat": "docs/run.html", "API call": "docs/api.html",
         "agent": "docs/agents.html", "bench": "docs/benchmarks.html"}
# What a browser loads by itself; anchors (`a href`) are the reader's choice.
LOADED = {("img", "src"), ("script", "src"), ("link", "href"), ("source", "src"), ("iframe", "src"), ("use", "href")}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        self.loaded += [given[name] for kind, name in LOADED if kind == tag and given.get(name)]


def resolve(page, link):
    """(file, anchor) of a link within the site; None for one to another host."""
    parts = urllib.parse.urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    path = urllib.parse.unquote(parts.path)
    target = (page.parent / path).resolve() if path else page
    return (target / "index.html" if target.is_dir() else target), urllib.parse.unquote(parts.fragment)


def main():
    pages = {path: Page(path) for path in SITE.rglob("*.html")}
    dead, outside, links = [], [], 0
    for path, page in pages.items():
        name = path.relative_to(SITE)
        if name.name == "404.html":
            continue  # its links are absolute: it is shown at any path
        outside += [f"{name}: {link}" for link in page.loaded if resolve(path, link) is None]
        for link in page.links + page.loaded:
            found = resolve(path, link)
            if found is None:
                continue
            links += 1
            target, anchor = found
            if not target.is_file():
                dead.append(f"{name}: {link}")
            elif anchor and target in pages and anchor not in pages[target].anchors and anchor != "__skip":
                dead.append(f"{name}: {link} has no such heading")
    first = SITE / "index.html"
    near = {first}
    for _ in range(2):
        near |= {found[0] for path in list(near) if path in pages for link in pages[path].links
                 if (found := resolve(path, link))}
    far = [task for task, page in TASKS.items() if SITE / page not in near]
    for problem in dead + [f"from another host: {each}" for each in outside]:
        print(problem)
    if dead or outside or far:
        sys.exit(f"site: {len(dead)} dead links, {len(outside)} things from other hosts, too far: {far or 'none'}")
    print(f"site: {len(pages)} pages, {links} links, 0 dead, nothing from other hosts, "
          f"{len(TASKS)} tasks within two clicks")


if __name__ == "__main__":
    main()
