# SPDX-License-Identifier: Apache-2.0
"""One kind of lock in src/: that of base/mutex.h, which clang checks. And each Mutex says what it
guards: clang looks only at fields that are marked."""
import re

import tree

OURS = "src/base/mutex.h"
STANDARD = re.compile(
    r"\bstd::((?:recursive_|timed_|recursive_timed_|shared_|shared_timed_)?mutex"
    r"|condition_variable(?:_any)?|lock_guard|unique_lock|scoped_lock|shared_lock)\b"
    r"|#\s*include\s*<(mutex|shared_mutex|condition_variable)>")
MUTEX = re.compile(r"\bMutex\s+(\w+(?:\s*,\s*\w+)*)\s*[;{=]")


def scope_around(code, at):
    """The text between the innermost braces around a position; the whole file if there are none."""
    depth, start = 0, at
    while start > 0 and depth < 1:
        start -= 1
        depth += {"{": 1, "}": -1}.get(code[start], 0)
    depth, end = 0, at
    while end < len(code) and depth > -1:
        depth += {"{": 1, "}": -1}.get(code[end], 0)
        end += 1
    return code[start:end]


def violations(path, code):
    for match in STANDARD.finditer(code):
        number = code.count("\n", 0, match.start()) + 1
        name = f"std::{match.group(1)}" if match.group(1) else f"<{match.group(2)}>"
        yield number, f"{path}:{number}: {name}: use base/mutex.h"
    for match in MUTEX.finditer(code):
        number = code.count("\n", 0, match.start()) + 1
        scope = scope_around(code, match.start())
        for name in re.findall(r"\w+", match.group(1)):
            if not re.search(rf"\bHEARTH_(?:PT_)?GUARDED_BY\(\s*{name}\s*\)", scope):
                yield number, f"{path}:{number}: nothing beside {name} is HEARTH_GUARDED_BY({name})"


def main():
    root = tree.root_argument()
    bad, count = [], 0
    for path in tree.cpp_files(root, ("src",)):
        if str(path) == OURS:
            continue
        count += 1
        bad += [text for _, text in sorted(violations(path, tree.code_only(tree.read(root, path))))]
    tree.report(bad, f"{count} files")


if __name__ == "__main__":
    main()
