# SPDX-License-Identifier: Apache-2.0
"""What a package contains of others: SPDX 2.3 from dpkg's, cargo's and the page's bundler's own records,
and their licences."""
import base64
import datetime
import functools
import json
import os
import pathlib
import re
import subprocess
import tomllib

import bundle
import tree

LICENCE = re.compile(r"(LICEN[CS]E|COPYING|UNLICENSE)", re.I)
# Compiled into the program from headers, or as archives; no library names them.
HEADERS = ("libboost1.81-dev", "libcli11-dev", "libtomlplusplus-dev")


@functools.cache
def packages_of(paths):
    """The Debian packages that libraries came from. dpkg may know a path with or without /usr, and
    each call reads all of its records: one is enough."""
    names = {}
    for path in paths:
        real = str(path.resolve())
        for name in (real, real.removeprefix("/usr"), str(path), "/usr" + str(path)):
            names[name] = path
    # Fails for the names that nobody has; what counts is that each path has one.
    done = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True, check=False)
    found = {names[name]: package.split(":")[0] for package, _, name in
             (line.rpartition(": ") for line in done.stdout.splitlines()) if name in names}
    lost = [str(path) for path in paths if path not in found]
    if lost:
        raise SystemExit(f"package: no Debian package has {', '.join(lost)}")
    return sorted(set(found.values()))


def debian(names):
    """What dpkg knows of installed packages."""
    out = []
    listed = tree.run("dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture}\n", *names)
    for name, version, architecture in sorted(set(map(tuple, map(str.split, listed.splitlines())))):
        out.append({"name": name, "version": version,
                    "purl": f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}?arch={architecture}"})
    return out


def cargo():
    home = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo")
    found = home / "bin" / "cargo"
    return (found if found.exists() else "cargo"), home


@functools.cache
def crates():
    """The crates that are linked, with licence and checksum; not those for other systems or tests."""
    program, home = cargo()
    lock = tomllib.loads((tree.ROOT / "rust/Cargo.lock").read_text(encoding="utf-8"))
    sums = {(each["name"], each["version"]): each.get("checksum") for each in lock["package"]}
    listed = tree.run(program, "tree", "--locked", "--offline", "--edges", "normal", "--prefix",
                      "none", "--package", "hearth_rust", "--manifest-path",
                      tree.ROOT / "rust/Cargo.toml")
    out = []
    for name, version in sorted(set(re.findall(r"^(\S+) v(\S+)", listed, re.MULTILINE))):
        if name.startswith("hearth"):
            continue
        folders = list(home.glob(f"registry/src/*/{name}-{version}"))
        if not folders:
            raise SystemExit(f"package: cargo has no source of {name} {version}")
        manifest = tomllib.loads((folders[0] / "Cargo.toml").read_text(encoding="utf-8"))
        out.append({"name": name, "version": version, "checksum": sums[(name, version)],
                    "licence": manifest["package"].get("license", "NOASSERTION").replace("/", " OR "),
                    "folder": folders[0], "purl": f"pkg:cargo/{name}@{version}"})
    return out


@functools.cache
def page_packages():
    """The npm packages whose code is in the web page, as web/packages.mjs wrote them when the page was
    built; none where the program has no page."""
    path = tree.ROOT / "build/web/page-packages.json"
    if not path.is_file():
        raise SystemExit(f"package: no {path}; run ./dev build release hearth first")
    out = []
    for each in json.loads(path.read_text(encoding="utf-8")):
        kind, _, digest = each["integrity"].partition("-")
        address = each["name"].replace("@", "%40")
        out.append({"name": each["name"], "version": each["version"], "licence": each["licence"],
                    "checksum": base64.b64decode(digest).hex(), "algorithm": kind.upper(),
                    "folder": tree.ROOT / "web" / each["folder"],
                    "purl": f"pkg:npm/{address}@{each['version']}"})
    return out


def system_packages(program):
    """The Debian packages whose libraries the program loads or was compiled from, glibc included."""
    own, system = bundle.libraries(program)
    return debian([*packages_of((*own.values(), *system.values())), *HEADERS])


def entry(item, number):
    """One package of the document."""
    out = {"SPDXID": f"SPDXRef-Package-{number}", "name": item["name"],
           "versionInfo": item["version"], "downloadLocation": "NOASSERTION",
           "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
           "licenseDeclared": item.get("licence", "NOASSERTION"), "copyrightText": "NOASSERTION",
           "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                             "referenceLocator": item["purl"]}]}
    if item.get("checksum"):
        out["checksums"] = [{"algorithm": item.get("algorithm", "SHA256"),
                             "checksumValue": item["checksum"]}]
    return out


def document(program, when):
    """The whole SPDX document as text."""
    version = tree.version()
    own = {"name": "hearth", "version": version, "licence": "Apache-2.0",
           "purl": f"pkg:generic/hearth@{version}"}
    others = [*system_packages(program), *crates(), *page_packages()]
    packages = [entry(item, number) for number, item in enumerate([own, *others])]
    made = datetime.datetime.fromtimestamp(when, datetime.timezone.utc)
    digest = tree.sha256(json.dumps(packages, sort_keys=True).encode())[:32]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                  "relatedSpdxElement": packages[0]["SPDXID"]}]
    relations += [{"spdxElementId": packages[0]["SPDXID"], "relationshipType": "DEPENDS_ON",
                   "relatedSpdxElement": each["SPDXID"]} for each in packages[1:]]
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"hearth-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/hearth-{version}-{digest}",
        "creationInfo": {"created": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: hearth packaging/sbom.py"]},
        "packages": packages, "relationships": relations}, indent=1) + "\n"


def copyright_text():
    """Debian's copyright file: ours, and the crates that are inside the program."""
    def lines(items):
        return "\n".join(f" {each['name']} {each['version']}: {each['licence']}" for each in items)
    return f"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: hearth
Comment: The program also contains code of these Rust crates, under licences of their own:
{lines(crates())}
 and its web page that of these npm packages:
{lines(page_packages())}

Files: *
Copyright: 2026 the Hearth developers
License: Apache-2.0

License: Apache-2.0
 On Debian systems the text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
"""


def licences(program, folder):
    """The licence texts of everything that a bundle carries, one file per package or crate."""
    folder.mkdir(parents=True, exist_ok=True)
    own, _ = bundle.libraries(program)
    for name in [*packages_of(tuple(own.values())), *HEADERS]:
        source = pathlib.Path("/usr/share/doc") / name / "copyright"
        if not source.is_file():
            raise SystemExit(f"package: {source} is missing")
        (folder / f"{name}.txt").write_bytes(source.read_bytes())
    for each in crates():
        texts = sorted(path for path in each["folder"].iterdir()
                       if path.is_file() and LICENCE.match(path.name))
        write_licence(folder / f"crate-{each['name']}.txt", each, texts)
    licences_of_page(folder)


def licences_of_page(folder):
    for each in page_packages():
        texts = sorted(path for path in each["folder"].iterdir()
                       if path.is_file() and LICENCE.match(path.name))
        if not texts:
            raise SystemExit(f"package: {each['folder']} has no licence")
        name = each["name"].replace("@", "").replace("/", "-")
        write_licence(folder / f"npm-{name}-{each['version']}.txt", each, texts)


def write_licence(path, item, texts):
    head = f"{item['name']} {item['version']}: {item['licence']}\n"
    body = "\n".join(each.read_text(encoding="utf-8", errors="replace") for each in texts)
    path.write_text(head + "\n" + body, encoding="utf-8")
