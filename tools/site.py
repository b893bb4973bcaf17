# SPDX-License-Identifier: Apache-2.0
"""./dev docs: stages the tree's Markdown and pictures as they lie and has mkdocs build the site, strictly.

A link to a folder becomes a page that lists it; a link to a source file leads to a copy of it.
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
STAGE = ROOT / "build/site-src"
KEPT = {".md", ".svg", ".png", ".json"}
# `[words](target)`, not an image, not on another host, not only an anchor.
LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def tracked():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout
    return [pathlib.Path(line) for line in listed.splitlines()]


def wanted(path):
    top = path.parts[0]
    return path.suffix in KEPT and (top == "docs" or path.parts[:2] == ("bench", "results")
                                    or len(path.parts) == 1)


def list_folder(folder):
    """A page for a folder that is linked to."""
    rows = "".join(f"- [{path.name}]({path.name})\n" for path in sorted(folder.iterdir())
                   if path.suffix == ".md" and path.name != "README.md")
    (folder / "README.md").write_text(f"# {folder.relative_to(STAGE)}\n\n{rows}")


def follow(page):
    """Copies what a page links to outside the stage; links to folders and sources are made pages of the site."""
    text = page.read_text()

    def mend(found):
        target, anchor = found.group(1), found.group(2) or ""
        place = (page.parent / target).resolve()
        if not place.is_relative_to(STAGE):
            return found.group(0)  # mkdocs complains
        source = ROOT / place.relative_to(STAGE)
        if source.is_dir():
            if not (place / "README.md").exists():
                place.mkdir(parents=True, exist_ok=True)
                list_folder(place)
            return f"]({target.rstrip('/')}/README.md{anchor})"
        if source.is_file() and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)
        return found.group(0)

    page.write_text(LINK.sub(mend, text))


def main():
    shutil.rmtree(STAGE, ignore_errors=True)
    for path in filter(wanted, tracked()):
        if (ROOT / path).is_file():
            (STAGE / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, STAGE / path)
    for page in sorted(STAGE.rglob("*.md")):
        follow(page)
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", ROOT / "mkdocs.yml"],
                   check=True, cwd=ROOT)
    print(f"site: {len(list((ROOT / 'build/site').rglob('*.html')))} pages in build/site")


if __name__ == "__main__":
    main()
