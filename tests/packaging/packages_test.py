# SPDX-License-Identifier: Apache-2.0
"""The packages that `./dev package` makes: complete, runnable where they land, reproducible."""
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import sys
import tarfile
import tempfile
import zipfile

from made import BUILD, expect, package, run, version
import bundle

UNIT = "lib/systemd/system/hearth.service"
# What a server has no use for; it comes with libcurl, libpq and libzmq.
UNWANTED = r"lib(curl|pq|zmq|ldap|lber|rtmp|ssh2|gnutls|gssapi_krb5|krb5|sasl2|pgm|norm)\b"
# Below the prefix.
INSTALLED = ("bin/hearth", UNIT, "lib/sysusers.d/hearth.conf",
             "share/bash-completion/completions/hearth", "share/zsh/vendor-completions/_hearth",
             "share/fish/vendor_completions.d/hearth.fish", "share/doc/hearth/docs/configuration.md",
             "share/doc/hearth/CHANGELOG.md")


def missing(folder, names):
    return [name for name in names if not (folder / name).exists()]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_install(folder):
    """cmake --install --prefix, as somebody who builds from source does."""
    prefix = folder / "prefix"
    code, _, err = run("cmake", "--install", BUILD, "--prefix", prefix)
    expect(code == 0, f"cmake --install: {err}")
    lost = missing(prefix, (*INSTALLED, "share/man/man1/hearth.1", "share/man/man1/hearth-serve.1",
                            "share/doc/hearth/hearth.toml", "share/doc/hearth/LICENSE"))
    expect(not lost, f"installed: {lost} missing")
    expect(f"ExecStart={prefix}/bin/hearth " in (prefix / UNIT).read_text(), "the unit's path")
    expect(run(prefix / "bin/hearth", "--version")[1].startswith(version()), "runs")
    code, out, err = run(prefix / "bin/hearth", "config", "check",
                         prefix / "share/doc/hearth/hearth.toml")
    expect(code == 0, f"the example configuration is right: {err}")
    # What it suggests in comments must be right as well.
    example = (prefix / "share/doc/hearth/hearth.toml").read_text()
    used = folder / "used.toml"
    used.write_text(re.sub(r"^# (?=[a-z-]+ = )", "", example, flags=re.MULTILINE))
    code, out, err = run(prefix / "bin/hearth", "config", "check", used)
    expect(code == 0 and "6 flags configured" in out, f"and so is what it suggests: {out}{err}")


def check_unit(folder):
    """The service is confined: systemd's own score, 0 (safe) to 10."""
    if not shutil.which("systemd-analyze"):
        print("SKIPPED: systemd-analyze is not installed; the unit was not scored")
        return
    code, out, err = run("systemd-analyze", "security", "--offline=true", "--no-pager",
                         "--threshold=20", folder / UNIT)
    score = re.search(r"Overall exposure level for \S+: ([\d.]+)", out)
    expect(code == 0 and score and float(score.group(1)) <= 2.0, f"exposure: {out[-300:]}{err}")
    code, _, err = run("systemd-analyze", "verify", "--man=no", folder / UNIT)
    wrong = [line for line in err.splitlines() if "is not executable" not in line]
    expect(code == 0 or not wrong, f"systemd-analyze verify: {wrong}")


def check_sbom(path, *names):
    document = json.loads(path.read_text())
    expect(document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0", "SPDX")
    found = {each["name"]: each for each in document["packages"]}
    expect(set(names) <= set(found), f"the SBOM names {names}: {sorted(found)}")
    ids = {each["SPDXID"] for each in document["packages"]} | {"SPDXRef-DOCUMENT"}
    expect(len(ids) == len(document["packages"]) + 1, "identifiers are unique")
    for relation in document["relationships"]:
        expect({relation["spdxElementId"], relation["relatedSpdxElement"]} <= ids, "relations hold")
    for each in document["packages"]:
        expect(each["versionInfo"] and each["externalRefs"][0]["referenceLocator"].startswith("pkg:"),
               f"{each['name']} has a version and an address")
    sums = [each for each in document["packages"] if "checksums" in each]
    digits = {"SHA256": 64, "SHA512": 128}  # crates', npm's
    expect(len(sums) > 10 and all(re.fullmatch(f"[0-9a-f]{{{digits[one['algorithm']]}}}", one["checksumValue"])
                                  for each in sums for one in each["checksums"]), "crates have their sums")


def check_deb(folder):
    first, _ = package("deb", folder / "one")
    again, _ = package("deb", folder / "two", umask=0o077)
    expect(digest(first) == digest(again), "the same program gives the same package")
    root = folder / "root"
    expect(run("dpkg-deb", "-x", first, root)[0] == 0, "unpacks")
    lost = missing(root / "usr", (*INSTALLED, "share/man/man1/hearth.1.gz",
                                  "share/man/man1/hearth-serve.1.gz", "share/doc/hearth/copyright",
                                  "share/doc/hearth/changelog.gz"))
    expect(not lost and (root / "etc/hearth/hearth.toml").exists(), f"the package: {lost} missing")
    expect("ExecStart=/usr/bin/hearth " in (root / "usr" / UNIT).read_text(), "the unit's path")
    listing = run("dpkg-deb", "-c", first)[1]
    odd = [line for line in listing.splitlines() if "root/root" not in line
           or not re.match(r"d.{3}r.xr.x|-rw(-r--r--|xr-xr-x)", line)]
    expect(listing and not odd, f"owners and modes: {odd}")
    fields = run("dpkg-deb", "-f", first)[1]
    expect(re.search(r"^Depends: .*\blibcurl4\b", fields, re.M) and
           re.search(r"^Recommends: .*\blibpq5, libzmq5$", fields, re.M), f"libraries that come late: {fields}")
    linked = bundle.loaded_by(root / "usr/bin/hearth", root)
    unwanted = [name for name in linked if re.match(UNWANTED, name)]
    expect(linked and not unwanted, f"none of these is linked: {unwanted}")
    expect("libssl3 (>=" in fields and "libc6 (>=" in fields and "Architecture: amd64" in fields,
           f"control: {fields}")
    expect(run("dpkg-deb", "--ctrl-tarfile", first)[0] == 0, "control archive")
    meta = folder / "meta"
    run("dpkg-deb", "-e", first, meta)
    expect((meta / "conffiles").read_text() == "/etc/hearth/hearth.toml\n", "a conffile")
    for script in ("postinst", "prerm", "postrm"):
        expect(run("sh", "-n", meta / script)[0] == 0, f"{script} is a script")
    for line in (meta / "md5sums").read_text().splitlines():
        want, name = line.split("  ")
        expect(hashlib.md5((root / name).read_bytes()).hexdigest() == want, f"md5 of {name}")
    expect(run(root / "usr/bin/hearth", "--version")[1].startswith(version()), "runs")
    check_unit(root / "usr")
    check_sbom(root / "usr/share/doc/hearth/hearth.spdx.json", "hearth", "libssl3", "libc6", "serde",
               "minijinja", "llguidance", "libtomlplusplus-dev", "preact", "temml")
    if not shutil.which("lintian"):
        print("SKIPPED: lintian is not installed; the package was not checked by it")
        return
    code, out, err = run("lintian", "--no-cfg", "--allow-root", "--fail-on=error,warning", first)
    expect(code == 0, f"lintian: {out}{err}")


def check_wheel(folder):
    path, said = package("wheel", folder / "one")
    again, _ = package("wheel", folder / "two", umask=0o077)
    expect(digest(path) == digest(again), "the same program gives the same wheel")
    newest = re.search(r"needs glibc (\d+)\.(\d+)", said)
    expect(newest and f"manylinux_{newest[1]}_{newest[2]}_x86_64" in path.name, f"{path.name}: {said}")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        expect(archive.testzip() is None and len(names) == len(set(names)), "a whole archive")
    with tempfile.TemporaryDirectory() as place:
        # Without --without-pip the environment would take seconds; pip works on it from outside.
        expect(run(sys.executable, "-m", "venv", "--without-pip", place)[0] == 0, "an environment")
        code, _, err = run(sys.executable, "-m", "pip", "--python", f"{place}/bin/python", "install",
                           "--no-index", "--no-deps", "--disable-pip-version-check", path)
        expect(code == 0, f"pip install: {err}")
        for command in ([f"{place}/bin/hearth"], [f"{place}/bin/python", "-m", "hearth_server"]):
            code, out, err = run(*command, "--version", env={"PATH": "/usr/bin:/bin"})
            expect(code == 0 and out.startswith(version()), f"{command}: {err}")
        expect(run(f"{place}/bin/hearth", "bogus")[0] == 2, "the exit code is the program's")


def check_tarball(folder):
    path, said = package("tarball", folder / "one")
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        expect(all(each.uid == 0 and each.mtime == 1700000000 for each in members), "owner, time")
        archive.extractall(folder / "unpacked", filter="fully_trusted")
    root = next((folder / "unpacked").iterdir())
    expect(not missing(root, (*INSTALLED, "share/doc/hearth/licenses/libssl3.txt",
                              "share/doc/hearth/licenses/crate-serde.txt")), "the tarball is whole")
    expect(run(root / "bin/hearth", "--version")[1].startswith(version()), "runs")
    unwanted = [name for name in bundle.loaded_by(root / "bin/hearth", root / "lib/hearth")
                if re.match(UNWANTED, name)]
    expect(not unwanted, f"none of these is linked: {unwanted}")
    # What is loaded later is found beside it, too, with what that needs.
    _, _, err = run(root / "bin/hearth", "top", "--once", "--url", "http://127.0.0.1:9",
                    env={"PATH": "/usr/bin:/bin", "LD_DEBUG": "files"})
    expect("is `hearth serve` running there?" in err, f"an answer of libcurl's: {err[-300:]}")
    for name in ("libcurl.so.4", "libldap-2.5.so.0"):
        expect(re.search(rf"calling init: {root}/bin/../lib/hearth/{re.escape(name)}", err), f"{name} beside the program")
    own, system = bundle.libraries(root / "bin/hearth")
    expect({"libcurl.so.4", "libpq.so.5", "libzmq.so.5"} <= set(own), "what is loaded later comes along")
    outside = [name for name, library in own.items() if root not in library.parents]
    expect(own and system and not outside, f"libraries come from the tarball: {outside}")
    for archive in ("libboost_json", "libsqlite3"):
        expect(not any(name.startswith(archive) for name in own), f"{archive} is inside the program")
    programs = [root / "bin/hearth", *(root / "lib/hearth").iterdir()]
    glibc, cxx = bundle.needs_of(programs), bundle.needs_of(programs, "GLIBCXX")
    # What Ubuntu 22.04 has.
    expect(max(glibc) <= (2, 35), f"glibc: {max(glibc)} for {glibc[max(glibc)]}")
    expect(max(cxx) <= (3, 4, 30), f"libstdc++: {max(cxx)} for {cxx[max(cxx)]}")
    expect(f"needs glibc {bundle.as_text(max(glibc))} or later" in said, f"said so: {said}")


def check_container(folder):
    path, said = package("container", folder / "one")
    root = folder / "one/container/rootfs"
    size = sum(each.lstat().st_size for each in root.rglob("*") if each.is_file())
    expect(5e6 < size < 150e6, f"{size / 1e6:.0f} MB")
    with tarfile.open(path) as archive:
        read = {each.name: archive.extractfile(each).read() for each in archive if each.isfile()}
    for name, data in read.items():
        if name.startswith("blobs/"):
            expect(hashlib.sha256(data).hexdigest() == name.rpartition("/")[2], f"digest of {name}")
    docker = json.loads(read["manifest.json"])[0]
    config = json.loads(read[docker["Config"]])
    with tarfile.open(fileobj=io.BytesIO(read[docker["Layers"][0]])) as layer:
        entries = {each.name: each for each in layer}
    expect(entries["var/lib/hearth"].uid == 65532 and entries["usr/bin/hearth"].uid == 0
           and entries["tmp"].mode == 0o1777, "its user may write where it should, and only there")
    expect(config["config"]["User"] == "65532:65532" and docker["Layers"][0] in read, "not root")
    expect(json.loads(read["index.json"])["manifests"][0]["digest"].replace(":", "/")
           in {name.removeprefix("blobs/") for name in read}, "the index names a manifest")
    containerfile = (folder / "one/container/Containerfile").read_text()
    expect("USER 65532:65532" in containerfile and "FROM scratch" in containerfile, "Containerfile")
    # Debian has it where users do not look.
    chroot = shutil.which("chroot", path=os.environ["PATH"] + ":/usr/sbin")
    enter = [chroot, "--userspec=65532:65532"] if os.geteuid() == 0 else ["unshare", "-r", chroot]
    code, out, err = run(*enter, root, "/usr/bin/hearth", "--version",
                         env={"PATH": "/usr/bin"})
    if code != 0 and "unshare" in err:
        print("SKIPPED: this user may not chroot; the root filesystem was not entered")
        return
    expect(code == 0 and out.startswith(version()), f"runs with nothing around it: {err}")


def main():
    expect((BUILD / "portable/hearth").is_file(), "hearth_portable is built")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for check in (check_install, check_deb, check_wheel, check_tarball, check_container):
            place = folder / check.__name__
            place.mkdir()
            check(place)
            print(f"{check.__name__[6:]} ok", flush=True)


main()
