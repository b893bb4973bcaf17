# SPDX-License-Identifier: Apache-2.0
"""The Debian package: the program with Debian's own libraries, service, configuration, manual."""
import datetime
import os
import pathlib
import shutil
import tempfile

import bundle
import sbom
import tree

# Nobody's address: the package is built from the source by whoever runs this.
MAINTAINER = "Hearth developers <hearth@packages.invalid>"
DESCRIPTION = """Description: run and serve language models on x86 CPUs
 Hearth loads GGUF and safetensors checkpoints and serves them over HTTP with
 the APIs that clients already speak: chat completions, completions, responses
 and messages, with tools, schemas and streaming. It needs no GPU.
 .
 The service is not started before /etc/hearth/hearth.toml names a model.
"""
POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ]; then
  systemd-sysusers hearth.conf
  if [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload
    # Not the first time: then it is not enabled yet.
    if [ -n "$2" ]; then deb-systemd-invoke try-restart hearth.service; fi
  fi
fi
"""
PRERM = """#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  deb-systemd-invoke stop hearth.service
fi
"""
POSTRM = """#!/bin/sh
set -e
if [ "$1" = purge ] && command -v deb-systemd-helper >/dev/null; then
  deb-systemd-helper purge hearth.service
fi
if [ -d /run/systemd/system ]; then systemctl --system daemon-reload; fi
"""


def depends(program):
    """What dpkg-shlibdeps makes of the libraries that the program loads."""
    with tempfile.TemporaryDirectory() as folder:
        debian = pathlib.Path(folder) / "debian"
        debian.mkdir()
        (debian / "control").write_text("Source: hearth\n\nPackage: hearth\nArchitecture: amd64\n")
        text = tree.run("dpkg-shlibdeps", "-O", f"-e{program}", cwd=folder)
    return text.strip().removeprefix("shlibs:Depends=")


def late_packages(program):
    """{library: package} of the libraries that are loaded when they are first used."""
    return {name: sbom.packages_of((path,))[0] for name, path in bundle.late_libraries(program).items()}


def relations(program):
    """Depends and Recommends. Many commands speak HTTP; a database and routers are for few, and what their
    libraries bring along need not be installed for the others."""
    late = late_packages(program)
    always = late.pop("libcurl.so.4")
    return (f"Depends: {depends(program)}, {always}, systemd | systemd-standalone-sysusers\n"
            f"Recommends: ca-certificates, {', '.join(sorted(late.values()))}\n")


def changelog(when):
    day = datetime.datetime.fromtimestamp(when, datetime.timezone.utc)
    return (f"hearth ({tree.version()}) unstable; urgency=medium\n\n"
            "  * See CHANGELOG.md in this folder.\n\n"
            f" -- {MAINTAINER}  {day.strftime('%a, %d %b %Y %H:%M:%S +0000')}\n")


def compress(path):
    path.with_name(path.name + ".gz").write_bytes(tree.gzipped(path.read_bytes()))
    path.unlink()


def fill(build, root, when):
    """Everything below the root of a system."""
    tree.install(build, root, "/usr")
    doc = root / "usr/share/doc/hearth"
    (root / "etc/hearth").mkdir(parents=True)
    shutil.move(doc / "hearth.toml", root / "etc/hearth/hearth.toml")
    (doc / "LICENSE").unlink()  # Debian's copyright file says where it is
    (doc / "copyright").write_text(sbom.copyright_text(), encoding="utf-8")
    (doc / "changelog").write_text(changelog(when), encoding="utf-8")
    (doc / "hearth.spdx.json").write_text(sbom.document(build / "bin/hearth", when),
                                          encoding="utf-8")
    compress(doc / "changelog")
    for page in sorted((root / "usr/share/man/man1").iterdir()):
        compress(page)


def control(root, program):
    size = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file()) // 1024 + 1
    return (f"Package: hearth\nVersion: {tree.version()}\nArchitecture: amd64\n"
            f"Maintainer: {MAINTAINER}\nInstalled-Size: {size}\n"
            f"{relations(program)}Section: net\nPriority: optional\n" + DESCRIPTION)


def build_deb(build, out):
    """Writes hearth_VERSION_amd64.deb into `out`; returns its path."""
    when = tree.epoch()
    root = tree.fresh(out / "deb")
    fill(build, root, when)
    meta = root / "DEBIAN"
    text = control(root, root / "usr/bin/hearth")
    meta.mkdir()
    (meta / "control").write_text(text, encoding="utf-8")
    (meta / "conffiles").write_text("/etc/hearth/hearth.toml\n")
    for name, script in (("postinst", POSTINST), ("prerm", PRERM), ("postrm", POSTRM)):
        (meta / name).write_text(script)
        (meta / name).chmod(0o755)
    files = sorted(path for path in root.rglob("*") if path.is_file() and meta not in path.parents
                   and path.parent != root / "etc/hearth")
    (meta / "md5sums").write_text("".join(
        f"{tree.md5(path.read_bytes())}  {path.relative_to(root)}\n" for path in files))
    tree.settle(root, when)
    package = out / f"hearth_{tree.version()}_amd64.deb"
    # xz at its fastest: a second instead of ten, for a tenth more bytes.
    tree.run("dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", root, package,
             env={**os.environ, "SOURCE_DATE_EPOCH": str(when)})
    return package
