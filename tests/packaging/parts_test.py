# SPDX-License-Identifier: Apache-2.0
"""The parts that packages are made with, each by itself: archives, lists of libraries, records."""
import io
import json
import os
import pathlib
import stat
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
sys.path.insert(0, str(ROOT / "packaging"))
from checking import same
import bundle
import deb
import portable
import sbom
import tree


def some_folder(folder, order):
    """The same files, made in another order, at another time, with other modes."""
    folder.mkdir()
    for name in order:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
        path.chmod(0o700 if name.startswith("bin") else 0o600)
    (folder / "link").symlink_to("bin/b")
    return folder


def check_archives(folder):
    one = some_folder(folder / "one", ["bin/b", "a", "z"])
    two = some_folder(folder / "two", ["z", "a", "bin/b"])
    for each in (one, two):
        tree.settle(each, 1000)
    same(stat.S_IMODE((one / "bin/b").stat().st_mode), 0o755, "programs can be run by all")
    same(stat.S_IMODE((one / "a").stat().st_mode), 0o644, "files can be read by all")
    same((one / "bin").stat().st_mtime, 1000, "folders have the time too")
    data = tree.tar_bytes(one, "top", 1000)
    same(data, tree.tar_bytes(two, "top", 1000), "an archive does not show how its folder was made")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        same(archive.getnames(), ["top", "top/a", "top/bin", "top/bin/b", "top/link", "top/z"], "sorted")
        same({each.uid for each in archive}, {0}, "owned by root")
        same(archive.getmember("top/link").linkname, "bin/b", "links stay links")
    with tarfile.open(fileobj=io.BytesIO(tree.tar_bytes(one, "", 1, {"bin": 7}))) as archive:
        same([(each.name, each.uid) for each in archive][:3], [(".", 0), ("a", 0), ("bin", 7)],
             "without a name above, and with an owner")
    same(tree.gzipped(b"x"), tree.gzipped(b"x"), "gzip without a time")
    same(tree.gzipped(b"x")[4:8], b"\0\0\0\0", "none at all")


def check_zip():
    files = {"b": (b"B", 0o755), "a": (b"A" * 1000, 0o644)}
    data = portable.zip_bytes(files, 1700000000)
    same(data, portable.zip_bytes(files, 1700000000), "the same bits")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        same([each.filename for each in archive.infolist()], ["b", "a"], "in the order given")
        same(archive.getinfo("b").external_attr >> 16, 0o100755, "modes are Unix's")
        same(archive.getinfo("a").date_time, (2023, 11, 14, 22, 13, 20), "the time, in UTC")
        same(archive.read("a"), b"A" * 1000, "the content")
    portable.zip_bytes(files, 0)  # before 1980: what the format begins with
    same(portable.record_line("n", b"abc"),
         "n,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\n", "a wheel's record")


def check_libraries(folder):
    for name, is_system in (("libc.so.6", True), ("ld-linux-x86-64.so.2", True), ("libm.so.6", True),
                            ("libresolv.so.2", True), ("libstdc++.so.6", True), ("libgcc_s.so.1", True),
                            ("libcurl.so.4", False), ("libcrypto.so.3", False), ("libmagic.so.1", False),
                            ("libcap.so.2", False)):
        same(bool(bundle.SYSTEM.fullmatch(name)), is_system, name)
    text = """
0000000000000000      DF *UND*	0000000000000000 (GLIBC_2.34) pthread_create
0000000000000000  w   DF *UND*	0000000000000000 (GLIBC_2.36) arc4random
0000000000000000      DF *UND*	0000000000000000 (GLIBCXX_3.4.30) _ZNSt18wait
0000000000000000      DF *UND*	0000000000000000              plain
0000000000001000 g    DF .text	0000000000000010  GLIBC_2.99  ours
"""
    same(bundle.SYMBOL.findall(text), [("GLIBC", "2.34", "pthread_create"),
                                       ("GLIBC", "2.36", "arc4random"),
                                       ("GLIBCXX", "3.4.30", "_ZNSt18wait")], "what is taken, not given")
    same(max(map(bundle.as_version, ("2.4", "2.34", "2.2.5"))), (2, 34), "versions are numbers")
    same(bundle.as_text((3, 4, 30)), "3.4.30", "and texts again")
    own, system = bundle.libraries(pathlib.Path(sys.executable).resolve())
    same(set(own) & set(system), set(), "a library is one or the other")
    same(any(name.startswith("libc.so") for name in system), True, "every program has glibc")
    script = folder / "none"
    try:
        bundle.portable(script)
        same("no error", "an error", "a program that is not built")
    except SystemExit as error:
        same("hearth_portable" in str(error), True, f"says how to build it: {error}")


def check_records():
    item = {"name": "n", "version": "1", "purl": "pkg:x/n@1", "licence": "MIT", "checksum": "ab"}
    out = sbom.entry(item, 3)
    same((out["SPDXID"], out["licenseDeclared"], out["checksums"][0]["checksumValue"]),
         ("SPDXRef-Package-3", "MIT", "ab"), "an entry")
    same("checksums" in sbom.entry({**item, "checksum": None}, 1), False, "no sum, no field")
    names = [each["name"] for each in sbom.crates()]
    same(names, sorted(names), "sorted")
    same({"minijinja", "llguidance"} <= set(names), True, "what is linked")
    same([each for each in names if each.startswith(("windows", "hearth"))], [], "and nothing else")
    same(len(sbom.crates()[0]["checksum"]), 64, "with its sum")
    text = sbom.copyright_text()
    same(all(f" {name} " in text for name in names), True, "every crate's licence is named")
    same(all(line.startswith((" ", "Format:", "Upstream-Name:", "Comment:", "Files:", "Copyright:",
                              "License:")) for line in text.splitlines() if line), True,
         "Debian's format")
    document = json.loads(sbom.document(pathlib.Path("/bin/sh"), 1700000000))
    same(document["creationInfo"]["created"], "2023-11-14T22:13:20Z", "the time that was given")


def check_texts():
    same(deb.changelog(1700000000).splitlines()[0], f"hearth ({tree.version()}) unstable; urgency=medium",
         "the changelog's head")
    same(deb.changelog(1700000000).splitlines()[-1],
         f" -- {deb.MAINTAINER}  Tue, 14 Nov 2023 22:13:20 +0000", "its end")
    depends = deb.depends(pathlib.Path("/bin/sh").resolve())
    same(depends.startswith("libc6 (>= "), True, f"a shell needs glibc: {depends}")
    head, _, body = portable.metadata().partition("\n\n")
    same("Name: hearth-server" in head.splitlines() and body.startswith("# Hearth"), True, "metadata")
    before = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = "12"
    same(tree.epoch(), 12, "the time can be given")
    del os.environ["SOURCE_DATE_EPOCH"]
    same(tree.epoch() > 1700000000, True, "or is the last commit's")
    if before is not None:
        os.environ["SOURCE_DATE_EPOCH"] = before
    try:
        tree.run("sh", "-c", "echo broken >&2; exit 3")
        same("no error", "an error", "a program that fails")
    except SystemExit as error:
        same("(3): broken" in str(error), True, f"ends ours with what it said: {error}")


def main():
    with tempfile.TemporaryDirectory() as name:
        check_archives(pathlib.Path(name))
        check_libraries(pathlib.Path(name))
    check_zip()
    check_records()
    check_texts()
    print("parts ok")


main()
