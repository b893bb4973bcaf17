# SPDX-License-Identifier: Apache-2.0
"""Packages that bring their libraries: the tarball, the wheel, the container's root filesystem."""
import base64
import hashlib
import io
import json
import pathlib
import shutil
import zipfile
import time

import bundle
import sbom
import tree


def staged(build, out, when):
    """bin, lib and share as they stand in the tarball; and what they need of glibc."""
    # As if it lay in /opt/hearth, which its unit names; it runs from anywhere.
    root = tree.fresh(out / "portable")
    tree.install(build, root, "/opt/hearth")
    folder = root / "opt/hearth"
    copied = bundle.assemble(build, folder)
    doc = folder / "share/doc/hearth"
    sbom.licences(bundle.portable(build), doc / "licenses")
    (doc / "hearth.spdx.json").write_text(sbom.document(bundle.portable(build), when),
                                          encoding="utf-8")
    newest, words = bundle.report(copied)
    print(words)
    tree.settle(folder, when)
    return folder, newest


def build_tarball(build, out):
    when = tree.epoch()
    folder, _ = staged(build, out, when)
    name = f"hearth-{tree.version()}-linux-x86_64"
    path = out / f"{name}.tar.gz"
    path.write_bytes(tree.gzipped(tree.tar_bytes(folder, name, when)))
    return path


# --- the wheel ------------------------------------------------------------------------------------

LAUNCHER = '''# SPDX-License-Identifier: Apache-2.0
"""The program that this package carries."""
import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "hearth")


def main():
    """Becomes the program: signals, exit code and terminal are its own."""
    os.execv(PROGRAM, ["hearth", *sys.argv[1:]])


if __name__ == "__main__":
    main()
'''


def metadata():
    readme = (tree.ROOT / "packaging" / "wheel.md").read_text(encoding="utf-8")
    return ("Metadata-Version: 2.1\nName: hearth-server\n"
            f"Version: {tree.version()}\nSummary: Run and serve language models on x86 CPUs\n"
            "License: Apache-2.0\nRequires-Python: >=3.8\n"
            "Classifier: Operating System :: POSIX :: Linux\n"
            "Description-Content-Type: text/markdown\n\n" + readme)


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def build_wheel(build, out):
    """Writes hearth_server-VERSION-py3-none-manylinux_….whl into `out`; returns its path."""
    when = tree.epoch()
    folder, newest = staged(build, out, when)
    info = f"hearth_server-{tree.version()}.dist-info"
    tag = f"py3-none-manylinux_{newest[0]}_{newest[1]}_x86_64"
    files = {"hearth_server/__init__.py": (LAUNCHER.encode(), 0o644),
             "hearth_server/__main__.py": (b"from hearth_server import main\n\nmain()\n", 0o644)}
    for path in sorted((folder / "bin").iterdir()):
        files[f"hearth_server/bin/{path.name}"] = (path.read_bytes(), 0o755)
    for path in sorted((folder / "lib/hearth").iterdir()):
        files[f"hearth_server/lib/hearth/{path.name}"] = (path.read_bytes(), 0o644)
    doc = folder / "share/doc/hearth"
    for path in [doc / "LICENSE", doc / "hearth.spdx.json", *sorted((doc / "licenses").iterdir())]:
        files[f"{info}/{path.relative_to(doc).as_posix()}"] = (path.read_bytes(), 0o644)
    files[f"{info}/METADATA"] = (metadata().encode(), 0o644)
    files[f"{info}/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: hearth\nRoot-Is-Purelib: false\n"
                              f"Tag: {tag}\n".encode(), 0o644)
    files[f"{info}/entry_points.txt"] = (
        b"[console_scripts]\nhearth = hearth_server:main\n", 0o644)
    record = "".join(record_line(name, data) for name, (data, _) in files.items())
    files[f"{info}/RECORD"] = ((record + f"{info}/RECORD,,\n").encode(), 0o644)
    path = out / f"hearth_server-{tree.version()}-{tag}.whl"
    path.write_bytes(zip_bytes(files, when))
    return path


def zip_bytes(files, when):
    out = io.BytesIO()
    # The format has no time before 1980, and no zone.
    stamp = time.gmtime(max(when, 315532800))[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(name, stamp)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix: modes count
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, data)
    return out.getvalue()


# --- the container --------------------------------------------------------------------------------

USER = 65532
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


def root_filesystem(build, out, when):
    """All that the program needs, glibc and its loader included, and nothing else: no shell."""
    folder, _ = staged(build, out, when)
    root = tree.fresh(out / "container" / "rootfs")
    shutil.copytree(folder / "bin", root / "usr/bin")
    # Where the loader looks without being told: it finds its way from the program only with /proc.
    libraries = root / "usr/lib/x86_64-linux-gnu"
    shutil.copytree(folder / "lib/hearth", libraries)
    shutil.copytree(folder / "share/doc", root / "usr/share/doc")
    _, system = bundle.libraries(bundle.portable(build))
    loader = pathlib.Path("/lib64/ld-linux-x86-64.so.2")
    (root / "lib64").mkdir()
    shutil.copy(loader.resolve(), root / "lib64" / loader.name)
    for name, path in sorted(system.items()):
        shutil.copy(path.resolve(), libraries / name)
    etc = root / "etc"
    etc.mkdir()
    (etc / "passwd").write_text(f"hearth:x:{USER}:{USER}:hearth:/var/lib/hearth:/usr/bin/hearth\n")
    (etc / "group").write_text(f"hearth:x:{USER}:\n")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    (etc / "ssl/certs").mkdir(parents=True)
    if not CERTIFICATES.is_file():
        raise SystemExit(f"package: {CERTIFICATES} is missing; install ca-certificates")
    shutil.copy(CERTIFICATES, etc / "ssl/certs" / CERTIFICATES.name)
    for name in ("var/lib/hearth", "tmp", "run"):
        (root / name).mkdir(parents=True)
    tree.settle(root, when)
    (root / "tmp").chmod(0o1777)
    return root


def blob(blobs, data):
    digest = tree.sha256(data)
    blobs[f"blobs/sha256/{digest}"] = data
    return {"digest": f"sha256:{digest}", "size": len(data)}


def build_container(build, out):
    """The root filesystem beside a Containerfile, and the same as an image that podman and docker
    load: the OCI layout, with the list that `docker load` reads."""
    when = tree.epoch()
    root = root_filesystem(build, out, when)
    shutil.copy(tree.ROOT / "packaging/Containerfile", root.parent / "Containerfile")
    layer = tree.tar_bytes(root, "", when, {"var/lib/hearth": USER})
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    config = {"architecture": "amd64", "os": "linux", "created": made,
              "config": {"User": f"{USER}:{USER}", "WorkingDir": "/var/lib/hearth",
                         "Env": ["HOME=/var/lib/hearth"], "ExposedPorts": {"8080/tcp": {}},
                         "Entrypoint": ["/usr/bin/hearth"], "Cmd": ["serve"],
                         "StopSignal": "SIGTERM"},
              "rootfs": {"type": "layers", "diff_ids": [f"sha256:{tree.sha256(layer)}"]},
              "history": [{"created": made, "created_by": "packaging/portable.py"}]}
    blobs, kind = {}, "application/vnd.oci.image"
    config_blob = blob(blobs, json.dumps(config, sort_keys=True).encode())
    layer_blob = blob(blobs, tree.gzipped(layer))
    manifest = blob(blobs, json.dumps({
        "schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json",
        "config": {"mediaType": f"{kind}.config.v1+json", **config_blob},
        "layers": [{"mediaType": f"{kind}.layer.v1.tar+gzip", **layer_blob}]},
        sort_keys=True).encode())
    name = f"hearth:{tree.version()}"
    index = {"schemaVersion": 2, "mediaType": f"{kind}.index.v1+json", "manifests": [
        {"mediaType": f"{kind}.manifest.v1+json", **manifest,
         "annotations": {"org.opencontainers.image.ref.name": name}}]}
    docker = [{"Config": path_of(config_blob), "RepoTags": [name], "Layers": [path_of(layer_blob)]}]
    layout = tree.fresh(out / "container" / "image")
    for path, data in {**blobs, "index.json": json.dumps(index, sort_keys=True).encode(),
                       "manifest.json": json.dumps(docker, sort_keys=True).encode(),
                       "oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}.items():
        (layout / path).parent.mkdir(parents=True, exist_ok=True)
        (layout / path).write_bytes(data)
    tree.settle(layout, when)
    path = out / f"hearth-{tree.version()}-container.tar"
    path.write_bytes(tree.tar_bytes(layout, "", when))
    size = sum(each.lstat().st_size for each in root.rglob("*") if each.is_file())
    print(f"root filesystem: {size / 1e6:.1f} MB without a model")
    return path


def path_of(described):
    return "blobs/" + described["digest"].replace(":", "/")
