# SPDX-License-Identifier: Apache-2.0
"""Every C++ file is as `./dev fmt` (clang-format-19) would write it."""
import concurrent.futures
import os
import re
import subprocess

import tree


def complaints(root, batch):
    done = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *map(str, batch)], cwd=root,
                          capture_output=True, text=True, check=False)
    found = re.findall(r"^([^\s:]+:\d+):\d+: error: ", done.stderr, re.MULTILINE)
    if done.returncode != 0 and not found:
        return [done.stderr.strip()]
    return [f"{place}: not as ./dev fmt writes it" for place in dict.fromkeys(found)]


def main():
    root = tree.root_argument()
    paths = tree.cpp_files(root)
    batches = [paths[at:at + 8] for at in range(0, len(paths), 8)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        bad = [line for lines in pool.map(lambda batch: complaints(root, batch), batches)
               for line in lines]
    tree.report(bad, f"{len(paths)} files")


if __name__ == "__main__":
    main()
