# SPDX-License-Identifier: Apache-2.0
"""For each gate: a clean tiny tree, and by name the violations to plant into it, each with the
beginning of the line that the gate must print."""

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n// A file of a planted tree.\n"
SCRIPT = "# SPDX-License-Identifier: Apache-2.0\n# A script of a planted tree.\n"


def function(name, lines):
    """A C++ function of exactly so many lines, brace lines included."""
    body = "".join(f"  x += {number};\n" for number in range(lines - 3))
    return f"int {name}(int x) {{\n{body}  return x;\n}}\n"


LAYERS_FOLDERS = "base\nkv base\nserver base\nserver/keys base\nserver/turns %s\napp *\n"
LAYERS_CLEAN = {
    "LAYERS": "base\nkv base\nserver base kv\nserver/keys base\nserver/turns base server/keys\n"
              "server/turns/old server/keys server/turns\napp *\n"
              "@boost/json base\n@boost/ server\n@sql server/keys\n@CLI/ app\n",
    "src/base/a.h": '#include <vector>\n#include <sys/mman.h>\n#include "base/b.h"\n',
    "src/base/json.cc": "#include <boost/json/value.hpp>\n",
    "src/kv/pool.h": '#include "base/a.h"\n',
    "src/kv/pool_test.cc": '#include <gtest/gtest.h>\n#include "testing/data.h"\n',
    "src/server/x.h": '#include "server/turns/t.h"\n#include "kv/pool.h"\n',
    "src/server/keys/k.h": '#include <boost/asio.hpp>\n#include <sql.h>\n#include "base/a.h"\n',
    "src/server/keys/k_test.cc": '#include "server/x.h"\n#include "server/turns/t.h"\n',
    "src/server/turns/t.h": '#include "server/keys/k.h"\n',
    "src/server/turns/old/o.h": '#include "server/turns/t.h"\n',
    "src/app/main.cc": '#include <CLI/CLI.hpp>\n#include "server/turns/t.h"\n#include "kv/pool.h"\n',
}
LAYERS_PLANTS = {
    "uphill include": ({"src/kv/bad.h": '// x\n#include "server/x.h"\n'},
                       r"src/kv/bad\.h:2: kv/ may not include server/"),
    "library without a row": ({"src/base/a.h": "#include <zlib.h>\n"},
                              r"src/base/a\.h:1: <zlib\.h> is neither"),
    "library of another room": ({"src/kv/pool.h": "#include <CLI/CLI.hpp>\n"},
                                r"src/kv/pool\.h:1: kv/ may not include <CLI/CLI\.hpp>"),
    "the longest row decides": ({"src/server/j.cc": "#include <boost/json/value.hpp>\n"},
                                r"src/server/j\.cc:1: server/ may not include <boost/json"),
    "room without a row": ({"src/attic/a.h": "\n"}, r"src/attic/a\.h:1: room attic/"),
    "include without a room": ({"src/kv/bad.h": '#include "pool.h"\n'}, r"src/kv/bad\.h:1: write"),
    "test header outside tests": ({"src/kv/bad.cc": "#include <gtest/gtest.h>\n"},
                                  r"src/kv/bad\.cc:1: <gtest/gtest\.h> is neither"),
    "a cycle in LAYERS": ({"LAYERS": "base kv\nkv base\nserver\napp *\n"},
                          r"LAYERS:1: base names kv, which does not stand above it"),
    "uphill inside a room": ({"src/server/keys/k.h": '\n#include "server/turns/t.h"\n'},
                             r"src/server/keys/k\.h:2: server/keys/ may not include server/turns/"),
    "into a folder of a folder": ({"src/server/turns/t.h": '#include "server/turns/old/o.h"\n'},
                                  r"src/server/turns/t\.h:1: server/turns/ may not include"),
    "a room's own files from a folder": ({"src/server/turns/t.h": '#include "server/x.h"\n'},
                                         r"src/server/turns/t\.h:1: server/turns/ may not include"),
    "a room that a folder may not see": ({"src/server/keys/k.h": '#include "kv/pool.h"\n'},
                                         r"src/server/keys/k\.h:1: server/keys/ may not include kv/"),
    "folder without a row": ({"src/server/attic/a.h": "\n"},
                             r"src/server/attic/a\.h:1: folder server/attic/"),
    "library of another folder": ({"src/server/turns/t.h": "#include <sql.h>\n"},
                                  r"src/server/turns/t\.h:1: server/turns/ may not include <sql\.h>"),
    "a cycle of folders": ({"LAYERS": LAYERS_FOLDERS.replace("keys base", "keys server/turns") % ""},
                           r"LAYERS:4: server/keys names server/turns, which does not stand above"),
    "a folder that sees more than its room": ({"LAYERS": LAYERS_FOLDERS % "kv"},
                                              r"LAYERS:5: server/turns names kv, which server may"),
    "a folder that names its room": ({"LAYERS": LAYERS_FOLDERS % "server"},
                                     r"LAYERS:5: server/turns names server, the room itself"),
    "a folder above its room": ({"LAYERS": "base\nkv base\nserver/keys base\nserver kv\napp *\n"},
                                r"LAYERS:3: server/keys stands above its room"),
}

SIZES_CLEAN = {
    "src/kv/a.cc": "namespace x {\n" + function("Full", 60) + "}\n",
    "src/cpu/kernels_avx2.cc": function("Kernel", 120),
    "src/text/letters_tables.cc": "// Written by tools/x.py; do not edit.\n" + "\n" * 900,
    "tests/x/long.py": "x = 1\n" * 500,
    "dev": "#!/usr/bin/env bash\nf() {\n" + "  :\n" * 58 + "}\n",
    "docs/long.md": "x\n" * 900,
}
SIZES_PLANTS = {
    "file too long": ({"tests/x/long.py": "x = 1\n" * 501},
                      r"tests/x/long\.py:501: 501 lines, a file may have 500"),
    "function too long": ({"src/kv/a.cc": "namespace x {\n\n" + function("Over", 61) + "}\n"},
                          r"src/kv/a\.cc:3: Over has 61 lines, a function may have 60"),
    "method of a class": ({"src/kv/a.h": "template <class T>\nclass A {\n public:\n"
                           + function("Over", 61) + "};\n"}, r"src/kv/a\.h:3: Over has 62 lines"),
    "template function": ({"src/kv/a.h": "template <class T>\n" + function("Over", 60)},
                          r"src/kv/a\.h:1: Over has 61 lines"),
    "braces in text": ({"src/kv/a.cc": 'const char* s = "}}{";  // }\nchar c = \'{\';\n'
                        + 'auto r = R"(}\n})";\n' + function("Over", 61)},
                       r"src/kv/a\.cc:5: Over has 61 lines"),
    "kernel too long": ({"src/cpu/kernels_avx2.cc": function("Kernel", 121)},
                        r"src/cpu/kernels_avx2\.cc:1: Kernel has 121 lines, a function may have 120"),
    "python function": ({"tools/x.py": "\ndef f():\n" + "    x = 1\n" * 60},
                        r"tools/x\.py:2: f has 61 lines"),
    "shell function": ({"dev": "#!/usr/bin/env bash\nf() {\n" + "  :\n" * 59 + "}\n"},
                       r"dev:2: f has 61 lines"),
    "rust function": ({"rust/src/a.rs": "impl<'a> X<'a> {\nfn over(x: &'a str) {\n" + "  g('{');\n" * 59
                       + "}\n}\n"}, r"rust/src/a\.rs:2: over has 61 lines"),
    "a name is not enough to be generated": ({"src/text/x_tables.cc": "\n" * 501},
                                             r"src/text/x_tables\.cc:501: "),
}

HEADERS_CLEAN = {
    "src/base/a.h": "#pragma once\n#include <string>\ninline std::string A() { return {}; }\n",
    "src/kv/b.h": '#pragma once\n#include "base/a.h"\ninline std::string B() { return A(); }\n',
}
HEADERS_PLANTS = {
    "missing include": ({"src/kv/c.h": "#pragma once\ninline std::string C() { return {}; }\n"},
                        r"src/kv/c\.h:1: does not compile alone"),
    "hidden by another include": ({"src/kv/c.h": "#pragma once\ninline std::string C() { return {}; }\n",
                                   "src/kv/c.cc": '#include <string>\n#include "kv/c.h"\n'},
                                  r"src/kv/c\.h:1: does not compile alone"),
    "broken below": ({"src/base/a.h": "#pragma once\n"}, r"src/kv/b\.h:1: does not compile alone"),
}

SYMBOLS_CLEAN = {
    "src/cpu/kernels_a.cc": "namespace { int One() { return 1; } }\nint Table() { return One(); }\n",
}
SYMBOLS_PLANTS = {
    "weak symbol": ({"src/cpu/kernels_b.cc": "inline int W() { return 1; }\nint T() { return W(); }\n"},
                    r"src/cpu/kernels_b\.cc:1: weak symbol _Z1Wv"),
    "two exported symbols": ({"src/cpu/kernels_b.cc": "int A() { return 1; }\nint B() { return 2; }\n"},
                             r"src/cpu/kernels_b\.cc:1: exports 2 symbols"),
}

FORMAT_CLEAN = {
    ".clang-format": "BasedOnStyle: Google\nColumnLimit: 100\n",
    "src/kv/a.cc": "int A() { return 1; }\n",
}
FORMAT_PLANTS = {
    "spacing": ({"src/kv/a.cc": "int A() { return 1; }\nint  B( ) { return 2; }\n"},
                r"src/kv/a\.cc:2: not as"),
    "an .inl file": ({"src/cpu/a.inl": "int  A;\n"}, r"src/cpu/a\.inl:1: not as"),
}

MACROS_CLEAN = {
    "src/base/check.h": "#define HEARTH_CHECK(x) x\n",
    "tests/support/testing/data.h": "#define HEARTH_SKIP\n",
    "src/cpu/simd.inl": "#define HEARTH_LANES 8\n",
    "src/kv/a.cc": "// #define in a comment\n/*\n#define too\n*/\n",
}
MACROS_PLANTS = {
    "in a room": ({"src/kv/a.cc": "\n#  define MAX(a, b) a\n"}, r"src/kv/a\.cc:2: macro MAX"),
    "in a fuzz target": ({"fuzz/x_fuzz.cc": "#define X\n"}, r"fuzz/x_fuzz\.cc:1: macro X"),
    "in a kernel that is no .inl": ({"src/cpu/kernels_a.cc": "#define X\n"},
                                    r"src/cpu/kernels_a\.cc:1: macro X"),
}

LATER = "TO" "DO"
DEBT_CLEAN = {
    "src/kv/a.cc": f"// {LATER}(#12): one day\nint todo = 1;\n",
    "docs/a.md": f"{LATER}\n",
}
DEBT_PLANTS = {
    "without a number": ({"src/kv/a.cc": f"\n// {LATER}: one day\n"}, r"src/kv/a\.cc:2: "),
    "with a name": ({"tools/a.py": f"# {LATER}(somebody): x\n"}, r"tools/a\.py:1: "),
    "other words": ({"src/kv/a.cc": "// FIX" "ME(#) x\n"}, r"src/kv/a\.cc:1: "),
}

SPDX_CLEAN = {
    "src/kv/a.h": LICENCE,
    "src/kv/a.cc": '// SPDX-License-Identifier: Apache-2.0\n#include "kv/a.h"\n',
    "src/kv/a_test.cc": '// SPDX-License-Identifier: Apache-2.0\n#include "kv/a.h"\n',
    "tools/a.py": '# SPDX-License-Identifier: Apache-2.0\n"""What it does."""\n',
    "dev": "#!/usr/bin/env bash\n" + SCRIPT,
}
SPDX_PLANTS = {
    "no licence": ({"src/kv/a.h": "// A file.\n"}, r"src/kv/a\.h:1: expected"),
    "no licence in a script": ({"dev": "#!/bin/sh\n# x\n"}, r"dev:2: expected"),
    "nothing said": ({"src/kv/b.h": "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n"},
                     r"src/kv/b\.h:2: say"),
    "a .cc without a header": ({"src/kv/b.cc": "// SPDX-License-Identifier: Apache-2.0\nint x;\n"},
                               r"src/kv/b\.cc:2: say"),
    "too much said": ({"src/kv/a.h": LICENCE + "// x\n" * 4}, r"src/kv/a\.h:6: the opening"),
}

PLACES_CLEAN = {
    "README.md": "Models live in $HEARTH_WORK, see docs/work/x and ~/root/y and https://a.b/home/c\n",
    "rust/Cargo.lock": 'source = "registry+https://crates' '.io"\n',
}
PLACES_PLANTS = {
    "a work folder": ({"tools/a.py": 'x = 1\nMODELS = "/wo' 'rk/models"\n'}, r"tools/a\.py:2: names"),
    "a home folder": ({"README.md": "cd /ho" "me/me\n"}, r"README\.md:1: names"),
    "a registry": ({"docs/a.md": "\n\nget it from py" "pi.org\n"}, r"docs/a\.md:3: names"),
}

UNTRUSTED_CLEAN = {
    "src/kv/a.cc": '// atoi(x)\nconst char* s = "atoi(x)";\nint Histoi(int);\n',
    "src/kv/a_test.cc": "double x = strtod(s, nullptr);\n",
}
UNTRUSTED_PLANTS = {
    "stoi": ({"src/kv/a.cc": "\nint x = std::stoi(s);\n"}, r"src/kv/a\.cc:2: stoi"),
    "sscanf": ({"src/weights/a.cc": 'sscanf(s, "%d", &x);\n'}, r"src/weights/a\.cc:1: sscanf"),
    "strtoull": ({"src/weights/a.h": "x = strtoull(s, 0, 10);\n"}, r"src/weights/a\.h:1: strtoull"),
}

TERMINAL_CLEAN = {
    "src/app/a.cc": '// std::printf("x");\nPrintOut("{}\\n", name);\nPrintError("warning: %s\\n", why);\n'
                    'std::fwrite(data, 1, size, file_);\nF("std::cout << x");\n',
    "src/app/a_test.cc": 'std::printf("x");\n',
    "src/base/terminal.cc": "std::fwrite(safe.data(), 1, safe.size(), stdout);\n",
    "tests/x/a.cc": "std::cout << 1;\n",
}
TERMINAL_PLANTS = {
    "standard error": ({"src/app/a.cc": '\nstd::fprintf(stderr, "%s", name);\n'}, r"src/app/a\.cc:2: std::fprintf"),
    "on two lines": ({"src/app/a.cc": 'std::fprintf(\n    stderr, "%s", name);\n'}, r"src/app/a\.cc:1: std::fprintf"),
    "standard output": ({"src/app/a.cc": 'std::printf("%s", name);\n'}, r"src/app/a\.cc:1: std::printf"),
    "fmt": ({"src/app/a.h": 'fmt::print("{}", name);\n'}, r"src/app/a\.h:1: fmt::print"),
    "a stream": ({"src/kv/a.cc": "std::cerr << name;\n"}, r"src/kv/a\.cc:1: std::cerr"),
    "bytes": ({"src/app/a.cc": "std::fwrite(p, 1, n, stdout);\n"}, r"src/app/a\.cc:1: std::fwrite"),
    "a descriptor": ({"src/app/a.cc": "::write(STDERR_FILENO, p, n);\n"}, r"src/app/a\.cc:1: write"),
    "codes": ({"src/app/a.cc": "PrintCodes(stdout, name);\n"}, r"src/app/a\.cc:1: PrintCodes"),
}

CLOCKS_CLEAN = {
    "src/kv/a.cc": '// std::time(nullptr)\nauto t = std::chrono::steady_clock::now();\n'
                   'int64_t wall_s = clocks().wall_s;\nF("", Steady::now());\nF("the time (now)");\n',
    "src/kv/a_test.cc": "auto t = std::chrono::system_clock::now();\n",
    "src/base/clocks.cc": "int64_t WallSeconds() { return std::time(nullptr); }\n",
    "tests/x/a.cc": "auto t = time(nullptr);\n",
}
CLOCKS_PLANTS = {
    "the date for an age": ({"src/batch/a.cc": "\nbool old = std::time(nullptr) > due;\n"},
                            r"src/batch/a\.cc:2: std::time\(nullptr"),
    "the C call": ({"src/kv/a.h": "time_t t = time(NULL);\n"}, r"src/kv/a\.h:1: time\(NULL"),
    "the system's clock": ({"src/tiers/a.cc": "auto t = std::chrono::system_clock::now();\n"},
                           r"src/tiers/a\.cc:1: system_clock::now"),
    "the kernel's": ({"src/tiers/a.cc": "clock_gettime(CLOCK_REALTIME, &t);\n"},
                     r"src/tiers/a\.cc:1: CLOCK_REALTIME"),
    "the door": ({"src/http/a.cc": "if (WallSeconds() > end) return;\n"}, r"src/http/a\.cc:1: WallSeconds"),
    "the date of a file": ({"src/tiers/a.cc": "int64_t s = now - about.st_mtime;\n"},
                           r"src/tiers/a\.cc:1: st_mtime"),
    "the database's": ({"src/batch/a.cc": 'Run("DELETE FROM files WHERE due < now()");\n'},
                       r"src/batch/a\.cc:1: now\(\) is the database's"),
    "SQLite's": ({"src/batch/a.cc": "Run(\"DELETE FROM files WHERE due < datetime('now')\");\n"},
                 r"src/batch/a\.cc:1: datetime\("),
}

LOCKS_CLEAN = {
    "src/base/mutex.h": "#include <mutex>\n#include <condition_variable>\nstd::mutex m;\n",
    "src/kv/a.h": "// std::mutex\nclass A {\n  struct B { int x; };\n  mutable Mutex mu_;\n"
                  "  int x_ HEARTH_GUARDED_BY(mu_);\n};\n",
    "src/kv/b.h": "class B {\n  int* const x_ HEARTH_PT_GUARDED_BY(mu_);\n  Mutex mu_;\n};\n",
    "src/kv/c.cc": "class MutexLock;\nvoid F(Mutex& mu) { const MutexLock lock(mu); }\n",
    "tests/x/a.cc": "std::mutex m;\n",
}
LOCKS_PLANTS = {
    "a standard mutex": ({"src/kv/d.h": "\nstd::mutex m;\n"}, r"src/kv/d\.h:2: std::mutex: use"),
    "in a test": ({"src/kv/d_test.cc": "const std::lock_guard lock(m);\n"},
                  r"src/kv/d_test\.cc:1: std::lock_guard: use"),
    "a shared one": ({"src/kv/d.h": "std::shared_mutex m;\n"}, r"src/kv/d\.h:1: std::shared_mutex"),
    "a condition": ({"src/kv/d.h": "std::condition_variable_any c;\n"},
                    r"src/kv/d\.h:1: std::condition_variable_any"),
    "an include": ({"src/kv/d.h": "#include <vector>\n#include <mutex>\n"},
                   r"src/kv/d\.h:2: <mutex>: use"),
    "a mutex that guards nothing": ({"src/kv/d.h": "class D {\n  Mutex mu_;\n  int x_;\n};\n"},
                                    r"src/kv/d\.h:2: nothing beside mu_"),
    "guarded by another class's": (
        {"src/kv/d.h": "class C {\n  Mutex mu_;\n  int x_ HEARTH_GUARDED_BY(mu_);\n};\n"
                       "class D {\n  mutable Mutex mu_;\n  int x_;\n};\n"},
        r"src/kv/d\.h:6: nothing beside mu_"),
    "guarded by another mutex": (
        {"src/kv/d.h": "struct D {\n  Mutex mu, m;\n  int x HEARTH_GUARDED_BY(m);\n};\n"},
        r"src/kv/d\.h:2: nothing beside mu is"),
    "guarded in a comment": (
        {"src/kv/d.h": "struct D {\n  Mutex mu;\n  int x;  // HEARTH_GUARDED_BY(mu)\n};\n"},
        r"src/kv/d\.h:2: nothing beside mu"),
}

HARDENING_COMPILE = ("-fPIE -fstack-protector-strong -fstack-clash-protection -fcf-protection=full "
                     "-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
HARDENING_LINK = "-pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack"
HARDENING_CLEAN = {
    "src/app/main.cc": "#include <cstring>\n#include <unistd.h>\n"
                       "void F(char* to, const char* from, unsigned long n) {\n"
                       "  char a[64];\n  std::memcpy(a, from, n);\n  std::memcpy(to, a, 64);\n}\n"
                       "int main(int n, char** v) { F(v[0], v[1], n); return 0; }\n",
    "flags": f"{HARDENING_COMPILE}\n{HARDENING_LINK}\n",
}


def _hardening(old, new):
    return {"flags": HARDENING_CLEAN["flags"].replace(old, new)}


HARDENING_PLANTS = {
    "a fixed address": ({"flags": HARDENING_CLEAN["flags"].replace("-fPIE", "-fno-pie")
                         .replace("\n-pie", "\n-no-pie")},
                        r"build/release/bin/hearth:1: is not position-independent"),
    "no relro": (_hardening("-Wl,-z,relro", "-Wl,-z,norelro"),
                 r"build/release/bin/hearth:1: has no read-only"),
    "late binding": (_hardening("-Wl,-z,now", "-Wl,-z,lazy"),
                     r"build/release/bin/hearth:1: binds its imports late"),
    "an executable stack": (_hardening("noexecstack", "execstack"),
                            r"build/release/bin/hearth:1: has an executable stack"),
    "a place for libraries": (_hardening("-Wl,-z,now", "-Wl,-z,now -Wl,-rpath,/tmp"),
                              r"build/release/bin/hearth:1: looks for libraries"),
    "no canaries": (_hardening("-fstack-protector-strong", "-fno-stack-protector"),
                    r"build/release/bin/hearth:1: has no stack protector"),
    "no checked copies": (_hardening("-D_FORTIFY_SOURCE=3", ""),
                          r"build/release/bin/hearth:1: has no checked copies"),
    "fewer checked copies": (_hardening("-D_FORTIFY_SOURCE=3", "-D_FORTIFY_SOURCE=1"),
                             r"src/app/main\.cc:1: is compiled without -D_FORTIFY_SOURCE=3"),
    "no clash protection": (_hardening("-fstack-clash-protection", ""),
                            r"src/app/main\.cc:1: is compiled without -fstack-clash-protection"),
    "no marks": (_hardening("-fcf-protection=full", "-fcf-protection=none"),
                 r"build/release/CMakeFiles/hearth\.dir/src/app/main\.cc\.o:1: is not marked"),
}

CASES = {
    "layers": (LAYERS_CLEAN, LAYERS_PLANTS),
    "sizes": (SIZES_CLEAN, SIZES_PLANTS),
    "headers": (HEADERS_CLEAN, HEADERS_PLANTS),
    "symbols": (SYMBOLS_CLEAN, SYMBOLS_PLANTS),
    "format": (FORMAT_CLEAN, FORMAT_PLANTS),
    "macros": (MACROS_CLEAN, MACROS_PLANTS),
    "debt": (DEBT_CLEAN, DEBT_PLANTS),
    "spdx": (SPDX_CLEAN, SPDX_PLANTS),
    "places": (PLACES_CLEAN, PLACES_PLANTS),
    "locks": (LOCKS_CLEAN, LOCKS_PLANTS),
    "untrusted": (UNTRUSTED_CLEAN, UNTRUSTED_PLANTS),
    "clocks": (CLOCKS_CLEAN, CLOCKS_PLANTS),
    "terminal": (TERMINAL_CLEAN, TERMINAL_PLANTS),
    "hardening": (HARDENING_CLEAN, HARDENING_PLANTS),
}
