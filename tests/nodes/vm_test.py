# SPDX-License-Identifier: Apache-2.0
"""A virtual machine with two memory nodes, emulated (no KVM): nodes_check in it, on Debian's kernel with nothing
but busybox around it.

vm_test.py NODES_CHECK [--model M] [--minutes N]
Fetches the kernel package once to $HEARTH_WORK/vm. Skips loudly where qemu-system-x86_64, busybox or the kernel
cannot be had."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WORK = pathlib.Path(os.environ.get("HEARTH_WORK", pathlib.Path.home() / ".cache/hearth")) / "vm"
INIT = """#!/busybox sh
/busybox mkdir -p /proc /sys /dev /tmp
/busybox mount -t proc proc /proc
/busybox mount -t sysfs sys /sys
/busybox mount -t devtmpfs dev /dev
/nodes_check /model.gguf 2
echo "nodes_check ended with $?"
/busybox poweroff -f
"""


def skip(why):
    print(f"SKIPPED LOUDLY: {why}")
    sys.exit(0)


def kernel():
    """Debian's kernel for virtual machines, taken out of its package."""
    found = sorted(WORK.glob("boot/vmlinuz-*"))
    if found:
        return found[-1]
    WORK.mkdir(parents=True, exist_ok=True)
    needed = subprocess.run(["apt-cache", "depends", "linux-image-cloud-amd64"], capture_output=True, text=True,
                            check=False).stdout
    name = re.search(r"Depends: (linux-image-\S+)", needed)
    if not name or subprocess.run(["apt-get", "download", "-q", name.group(1)], cwd=WORK, check=False).returncode:
        skip("no kernel package can be fetched")
    package = next(WORK.glob("linux-image-*.deb"))
    subprocess.run(["dpkg-deb", "-x", package, WORK], check=True)
    shutil.rmtree(WORK / "lib", ignore_errors=True)
    package.unlink()
    return next(WORK.glob("boot/vmlinuz-*"))


def libraries(program):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", listed)


def initramfs(folder, program, model):
    root = folder / "root"
    root.mkdir()
    for path in libraries(program):
        to = root / path.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    shutil.copy(shutil.which("busybox"), root / "busybox")
    shutil.copy(program, root / "nodes_check")
    subprocess.run(["strip", root / "nodes_check"], check=True)
    shutil.copy(model, root / "model.gguf")
    (root / "init").write_text(INIT, encoding="utf-8")
    (root / "init").chmod(0o755)
    image = folder / "initramfs"
    with open(image, "wb") as out:
        names = subprocess.run(["find", "."], cwd=root, capture_output=True, check=True).stdout
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=root, input=names, stdout=out, check=True)
    return image


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--model", default=str(WORK.parent / "stories15M-q8_0.gguf"))
    parser.add_argument("--minutes", type=float, default=30)
    given = parser.parse_args()
    for tool in ("qemu-system-x86_64", "busybox", "cpio"):
        if not shutil.which(tool):
            skip(f"no {tool} (apt-get install qemu-system-x86 busybox-static cpio)")
    if not pathlib.Path(given.model).exists():
        skip(f"./dev model makes {given.model}")
    with tempfile.TemporaryDirectory() as folder:
        image = initramfs(pathlib.Path(folder), given.program, given.model)
        machine = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "1G", "-smp", "4,sockets=2",
                   "-object", "memory-backend-ram,id=m0,size=512M", "-object", "memory-backend-ram,id=m1,size=512M",
                   "-numa", "node,nodeid=0,cpus=0-1,memdev=m0", "-numa", "node,nodeid=1,cpus=2-3,memdev=m1",
                   "-kernel", kernel(), "-initrd", image, "-append", "console=ttyS0 quiet panic=-1", "-nographic",
                   "-no-reboot", "-nic", "none"]
        ran = subprocess.run(machine, capture_output=True, text=True, errors="replace", check=False,
                             stdin=subprocess.DEVNULL, timeout=given.minutes * 60)
    print(ran.stdout[-3000:])
    if "nodes_check ended with 0" not in ran.stdout:
        sys.exit("FAILED: weights not on their nodes, or other bits, or no end: see above")


if __name__ == "__main__":
    main()
