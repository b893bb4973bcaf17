# SPDX-License-Identifier: Apache-2.0
"""The program with the libraries it needs: what it looks for, which of that comes along, and which
glibc and libstdc++ the system it is copied to must have."""
import os
import pathlib
import re
import shutil

import tree

# What comes from the system, as for Python's manylinux wheels: glibc, which belongs together with the
# kernel's loader, and the compiler's run-time. Debian 12's libstdc++ is the one library that would need glibc
# 2.36 (arc4random); Ubuntu 22.04 has glibc 2.35, but the same libstdc++.
SYSTEM = re.compile(r"(ld-linux-x86-64|libc|libm|libmvec|libpthread|libdl|librt|libresolv|libutil"
                    r"|libanl|libnss_\w+|libstdc\+\+|libgcc_s)\.so(\.\d+)*")
NEEDED = re.compile(r"^\s*(\S+) => (/\S+) \(0x", re.MULTILINE)
LATE = re.compile(r'"(lib\w+\.so\.\d+)"')
MISSING = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
# An undefined symbol of objdump -T: its version and its name.
SYMBOL = re.compile(r"\*UND\*.*?\(?(GLIBC|GLIBCXX)_(\d+(?:\.\d+)+)\)?\s+(\S+)$", re.MULTILINE)


def late_names():
    """The libraries that the program loads when it first uses them, which no loader tells."""
    texts = (path.read_text(encoding="utf-8") for path in sorted((tree.ROOT / "src/late").glob("late_*.cc")))
    return sorted({name for text in texts for name in LATE.findall(text)})


def loaded_by(program, folder):
    """name -> path of what the loader loads for a program or a library; from `folder` before all others."""
    text = tree.run("ldd", program, env={**os.environ, "LD_LIBRARY_PATH": str(folder)})
    missing = MISSING.findall(text)
    if missing:
        raise SystemExit(f"package: {program} needs {', '.join(missing)}, not found here")
    return {name: pathlib.Path(path) for name, path in NEEDED.findall(text)}


def late_libraries(program):
    """name -> path of those: beside the program, or where the system has its libraries."""
    beside = program.resolve().parent.parent / "lib/hearth"
    folders = [beside, *sorted({path.parent for path in loaded_by(program, beside).values()})]
    out = {}
    for name in late_names():
        found = [folder / name for folder in folders if (folder / name).exists()]
        if not found:
            raise SystemExit(f"package: {program} may load {name}, which is not here")
        out[name] = found[0]
    return out


def libraries(program):
    """name -> path of everything that is loaded for the program, at its start or later: what is brought along,
    and what comes from the system."""
    beside = program.resolve().parent.parent / "lib/hearth"
    late = late_libraries(program)
    found = {**loaded_by(program, beside), **late}
    for path in late.values():
        found |= loaded_by(path, beside)
    return ({name: path for name, path in found.items() if not SYSTEM.fullmatch(name)},
            {name: path for name, path in found.items() if SYSTEM.fullmatch(name)})


def as_version(text):
    return tuple(int(part) for part in text.split("."))


def needs_of(paths, of="GLIBC"):
    """version -> {file: [symbols]} of what the files take from glibc, or from libstdc++ (GLIBCXX)."""
    needs = {}
    for path in paths:
        for whose, found, symbol in SYMBOL.findall(tree.run("objdump", "-T", path)):
            if whose == of:
                needs.setdefault(as_version(found), {}).setdefault(path.name, set()).add(symbol)
    return needs


def portable(build):
    """The program that is linked for other systems; the caller built it."""
    program = build / "portable" / "hearth"
    if not program.is_file():
        raise SystemExit(f"package: no {program}; run ./dev build release hearth_portable first")
    return program


def assemble(build, folder):
    """bin/hearth and lib/hearth/*.so below `folder`. Returns the paths of all programs in it."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / "lib" / "hearth").mkdir(parents=True, exist_ok=True)
    source = portable(build)
    own, _ = libraries(source)
    program = folder / "bin" / "hearth"
    shutil.copy(source, program)
    copied = [program]
    for name, path in sorted(own.items()):
        copied.append(folder / "lib" / "hearth" / name)
        shutil.copy(path.resolve(), copied[-1])
    for path in copied:
        tree.run("strip", "--strip-unneeded", path)
    program.chmod(0o755)
    return copied


def as_text(version):
    return ".".join(map(str, version))


def report(paths):
    """The glibc that the files need at least; and as words, with libstdc++ and who needs it."""
    needs = needs_of(paths)
    newest = max(needs)
    return newest, (f"needs glibc {as_text(newest)} or later (for {', '.join(sorted(needs[newest]))}), "
                    f"libstdc++ with GLIBCXX_{as_text(max(needs_of(paths, 'GLIBCXX')))}")
