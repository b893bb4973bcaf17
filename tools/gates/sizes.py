# SPDX-License-Identifier: Apache-2.0
"""The tail is what makes code feared: 500 lines a file, 60 a function, 120 in kernels."""
import ast
import fnmatch
import re

import tree

MAX_FILE = 500
MAX_FUNCTION = 60
MAX_KERNEL = 120
# Written by a committed script; each must say so ("Written by tools/...") in its first lines.
GENERATED = ("src/*_generated.*", "src/*_tables.*", "src/*_tables_*.*", "rust/Cargo.lock")
COUNTED = tree.CPP | {".py", ".rs", ".sh", ".cmake", ".js", ".mjs", ".ts"}

CONTAINER = re.compile(
    r"(?:(?:export|inline|static|constexpr|const|typedef|friend)\s+)*"
    r"(?:namespace|class|struct|union|enum)\b|extern\s*\"\s*\"\s*$|.*=\s*$", re.DOTALL)
TEMPLATE = re.compile(r"\s*template\s*<")


def without_template(head):
    """Drops leading `template <...>`, whose `class` would look like a class."""
    while match := TEMPLATE.match(head):
        depth, at = 1, match.end()
        while at < len(head) and depth > 0:
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
        head = head[at:]
    return head.strip()


def is_function(head, suffix):
    if suffix == ".rs":
        return re.search(r"\bfn\b", head) is not None
    head = without_template(head)
    return ")" in head and not CONTAINER.match(head)


def without_preprocessor(code):
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
                  lambda match: re.sub(r"[^\n]", " ", match.group(0)), code, flags=re.MULTILINE)


def braced_functions(text, suffix):
    """Yields (first line, last line, name) of the outermost function bodies."""
    code = without_preprocessor(tree.code_only(text))
    depth_in_function, head_start, function = 0, 0, None
    for match in re.finditer(r"[{};]", code):
        at, mark = match.start(), match.group(0)
        if function is not None:
            depth_in_function += {"{": 1, "}": -1}.get(mark, 0)
            if depth_in_function == 0:
                yield (*function[:1], code.count("\n", 0, at) + 1, function[1])
                function = None
                head_start = at + 1
            continue
        if mark == "{" and is_function(code[head_start:at], suffix):
            head = code[head_start:at]
            start = head_start + len(head) - len(head.lstrip())
            names = re.findall(r"([A-Za-z_~][\w:~]*)\s*\(", head)
            function = (code.count("\n", 0, start) + 1, names[0] if names else "?")
            depth_in_function = 1
        else:
            head_start = at + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno, node.name


def shell_functions(text):
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r"(\w+)\(\) \{", line):
            start = (number, match.group(1))
        elif line == "}" and start:
            yield start[0], number, start[1]
            start = None


def functions(path, text):
    if path.suffix in tree.CPP or path.suffix == ".rs":
        return braced_functions(text, path.suffix)
    if path.suffix == ".py":
        return python_functions(text)
    if path.suffix in ("", ".sh"):
        return shell_functions(text)
    return ()


def is_generated(path, text):
    return (any(fnmatch.fnmatch(str(path), pattern) for pattern in GENERATED)
            and "Written by tools/" in "\n".join(text.splitlines()[:4]))


def main():
    root = tree.root_argument()
    bad, count, longest = [], 0, 0
    for path in tree.files(root):
        in_code = path.parts[0] in tree.CODE_FOLDERS and path.suffix in COUNTED
        if not in_code and not tree.is_script(root, path):
            continue
        text = tree.read(root, path)
        if is_generated(path, text):
            continue
        count += 1
        lines = text.count("\n")
        if lines > MAX_FILE:
            bad.append(f"{path}:{MAX_FILE + 1}: {lines} lines, a file may have {MAX_FILE}")
        is_kernel = path.parent.name == "cpu" and (
            path.name.startswith("kernels_") or path.suffix == ".inl")
        limit = MAX_KERNEL if is_kernel else MAX_FUNCTION
        for first, last, name in functions(path, text):
            longest = max(longest, last - first + 1)
            if last - first + 1 > limit:
                bad.append(f"{path}:{first}: {name} has {last - first + 1} lines,"
                           f" a function may have {limit}")
    tree.report(bad, f"{count} files, longest function {longest} lines")


if __name__ == "__main__":
    main()
