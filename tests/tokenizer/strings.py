# SPDX-License-Identifier: Apache-2.0
"""Strings that find mistakes in tokenizers: deterministic, endless if asked, worst ones first."""

import itertools
import random
import unicodedata

# One of each kind that any split rule treats differently, and the neighbours that matter.
EDGE = [" ", "\t", "\n", "\r", "\u00a0", "\u0085", "\u2028", "a", "s", "L", "A", "1", "\u0669",
        "!", "'", "/", "\u017f", "\u01c5", "\u02b0", "\u0928", "\u0301", "\ue000"]
CONTRACTIONS = ["'s", "'S", "'t", "'T", "'re", "'RE", "'Re", "'ve", "'vE", "'m", "'M", "'ll", "'LL",
                "'lL", "'d", "'D", "'\u017f", "\u2019s", "'l", "'r", "'v", "'x", "''s", "'\u212a"]
AROUND = ["", " ", "a", "A", "don", "1", "!", "\n", "\u0928", "\u0301", "  "]
WORDS = ("the of and to in is that it was for with as his on be at by this had not are but from "
         "have an they which one you were all her she there would their we him been has when who "
         "no if out so what up said its about than into them can only other time new some could "
         "these two may first then do any like my now over such our man me even most made after "
         "also did many off before must well back through years much where your way down should "
         "because long each just state those people too mr how little good world make very year "
         "still see own work men day get here old life both between being under three never know "
         "return if else for while class def int void const static import from None True False "
         "std::vector <div> </div> => != == && || ++i i++ x[i] f(x) {} [] () // # /* */ 0x1F 1e-9 "
         "HTTPServer getElementById snake_case_name kConstantValue XMLHttpRequest iPhone McDonald "
         "don't I'll WE'VE they'd it's O'Brien rock'n'roll e.g. i.e. U.S.A. 3.14159 1,000,000 "
         "2026-11-15 12:34:56 user@example.com https://example.com/a/b?c=d&e=f#g :-) ... --- ___"
         ).split()
SPACES = [" ", " ", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", " \n", "\n  ", "\t", "\t\t", " \t ",
          "\u00a0", "\u3000", "\u2003 ", "\n \n", "\r", "\v", "\f", "", ""]
# First and last letters of scripts, so that words of one script can be made; gaps do no harm.
SCRIPTS = [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x250, 0x2AF), (0x300, 0x36F), (0x370, 0x3FF),
           (0x400, 0x52F), (0x531, 0x587), (0x591, 0x5F4), (0x600, 0x6FF), (0x700, 0x74F),
           (0x780, 0x7B1), (0x7C0, 0x7FA), (0x900, 0x97F), (0x980, 0x9FE), (0xA01, 0xA76),
           (0xA81, 0xAFF), (0xB01, 0xB77), (0xB82, 0xBFA), (0xC00, 0xC7F), (0xC80, 0xCF3),
           (0xD00, 0xD7F), (0xD81, 0xDF4), (0xE01, 0xE5B), (0xE81, 0xEDF), (0xF00, 0xFDA),
           (0x1000, 0x109F), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x1200, 0x139F), (0x13A0, 0x13FD),
           (0x1400, 0x167F), (0x1680, 0x169C), (0x16A0, 0x16F8), (0x1780, 0x17F9), (0x1800, 0x18AA),
           (0x1C50, 0x1C7F), (0x1E00, 0x1FFE), (0x2000, 0x206F), (0x2070, 0x209C), (0x20A0, 0x20C0),
           (0x2100, 0x218B), (0x2190, 0x23FF), (0x2460, 0x24FF), (0x2500, 0x27BF), (0x2C00, 0x2C7F),
           (0x2D30, 0x2D7F), (0x2E80, 0x2FD5), (0x3000, 0x303F), (0x3041, 0x309F), (0x30A0, 0x30FF),
           (0x3105, 0x312F), (0x3131, 0x318E), (0x3400, 0x34FF), (0x4E00, 0x5100), (0x9000, 0x9FFF),
           (0xA000, 0xA0FF), (0xA4D0, 0xA4FF), (0xA640, 0xA69F), (0xA960, 0xA97C), (0xAC00, 0xAEFF),
           (0xD000, 0xD7FB), (0xE000, 0xE0FF), (0xF900, 0xFAD9), (0xFB00, 0xFB4F), (0xFB50, 0xFDFF),
           (0xFE00, 0xFE6B), (0xFF01, 0xFFEE), (0x10000, 0x100FA), (0x10280, 0x1031F),
           (0x10330, 0x1034A), (0x10400, 0x104FB), (0x10800, 0x10855), (0x10900, 0x1091F),
           (0x10A00, 0x10A58), (0x10D40, 0x10D8F), (0x11000, 0x11075), (0x11080, 0x110C2),
           (0x11100, 0x11147), (0x11300, 0x11374), (0x11380, 0x113E2), (0x12000, 0x12399),
           (0x13000, 0x1345F), (0x16800, 0x16A38), (0x16D40, 0x16D79), (0x16F00, 0x16F9F),
           (0x17000, 0x170FF), (0x1B000, 0x1B122), (0x1D000, 0x1D1EA), (0x1D400, 0x1D7FF),
           (0x1E900, 0x1E95F), (0x1F100, 0x1F1FF), (0x1F300, 0x1F64F), (0x1F680, 0x1F6FF),
           (0x1F900, 0x1FAFF), (0x20000, 0x20100), (0x2EBF0, 0x2EC10), (0x30000, 0x30100),
           (0xE0001, 0xE007F), (0xE0100, 0xE01EF)]
EMOJI = ["\U0001f600", "\U0001f44d\U0001f3fd", "\u2764\ufe0f", "\U0001f468\u200d\U0001f469\u200d"
         "\U0001f467", "\U0001f1ee\U0001f1f3", "1\ufe0f\u20e3", "\U0001f3f4\U000e0067\U000e007f"]


def every_code_point(later_assigned=()):
    """Strings that put each assigned code point into at least five contexts."""
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        c = chr(code)
        if unicodedata.category(c) == "Cn" and code not in later_assigned:
            continue
        yield f"{c}a{c} {c}{c}A1{c}!{c}\n{c}'s{c}"


def edge_strings(length):
    return ("".join(parts) for parts in itertools.product(EDGE, repeat=length))


def contraction_strings():
    for before, mark, after in itertools.product(AROUND, CONTRACTIONS, AROUND):
        yield before + mark + after


def script_word(rng):
    first, last = rng.choice(SCRIPTS)
    return "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 9)))


def any_code_point(rng):
    code = rng.choice((rng.randrange(0x80), rng.randrange(0x3000), rng.randrange(0x20000),
                       rng.randrange(0x110000)))
    return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)


def mixed_string(rng):
    """One string of random words, scripts, numbers, spaces, symbols, emoji, and stray code points."""
    parts = []
    for _ in range(rng.randint(1, 12)):
        kind = rng.randrange(10)
        if kind < 3:
            parts.append(rng.choice(WORDS))
        elif kind < 5:
            parts.append(script_word(rng))
        elif kind == 5:
            parts.append(rng.choice(EDGE) * rng.choice((1, 2, 3, 7)))
        elif kind == 6:
            parts.append(str(rng.randrange(10 ** rng.randint(1, 12))))
        elif kind == 7:
            parts.append("".join(rng.choice("!?.,;:'\"()[]{}<>/\\|@#$%^&*-_=+`~")
                                 for _ in range(rng.randint(1, 6))))
        elif kind == 8:
            parts.append(rng.choice(CONTRACTIONS + EMOJI))
        else:
            parts.append("".join(any_code_point(rng) for _ in range(rng.randint(1, 4))))
        parts.append(rng.choice(SPACES))
        if rng.randrange(6) == 0:
            parts.append(parts[rng.randrange(len(parts))].swapcase())
        if rng.randrange(9) == 0:
            marks = [chr(rng.randint(0x300, 0x36F)) for _ in range(rng.randint(1, 4))]
            parts.append(rng.choice("aeEnoS\u0928\u1100\uac00") + "".join(marks))
    text = "".join(parts)
    return unicodedata.normalize("NFD", text) if rng.randrange(7) == 0 else text


def test_strings(count, seed, code_points=None):
    """`count` strings. Code points first (all, or a sample of a quarter of `count`), then edges."""
    rng = random.Random(seed)
    every = list(every_code_point(code_points or ()))
    if len(every) > count // 2:
        every = rng.sample(every, count // 4)
    strings = [""] + every + list(contraction_strings()) + list(edge_strings(1))
    strings += list(edge_strings(2)) + list(edge_strings(3))
    deep = list(edge_strings(4))
    room = (count - len(strings)) // 2
    strings += deep if len(deep) <= room else rng.sample(deep, max(room, 0))
    while len(strings) < count:
        strings.append(mixed_string(rng))
    return strings[:count]
