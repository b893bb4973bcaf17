# SPDX-License-Identifier: Apache-2.0
"""A gpt-oss GGUF rewritten as a Hugging Face and as an OpenAI checkpoint gives the same bits.

Usage: rewritten_test.py HEARTH FIXTURES SHARED_GOLDENS
"""
import pathlib
import sys
import tempfile

from runner import logits_bytes  # first: it also finds the folder of the next import

import rewrite_gpt_oss


def check(hearth, model, tokens):
    """The names of the layouts whose logits differ from the GGUF's."""
    expected = logits_bytes(hearth, model, tokens)
    differing = []
    with tempfile.TemporaryDirectory() as folder:
        rewrite_gpt_oss.rewrite(model, pathlib.Path(folder))
        for layout in ("hf", "original"):
            same = logits_bytes(hearth, pathlib.Path(folder) / layout, tokens) == expected
            print(f"{model.name}: {layout}: {len(expected)} bytes {'equal' if same else 'DIFFER'}")
            if not same:
                differing.append(f"{model.name} as {layout}")
    return differing


def main():
    hearth, fixtures, golden = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    differing = check(hearth, fixtures / "gpt-oss" / "model.gguf",
                      fixtures / "gpt-oss" / "tokens.i32")
    differing += check(hearth, golden / "tiny-oss-mxfp4.gguf", golden / "tiny-oss-tokens.i32")
    if differing:
        sys.exit(f"other logits than the GGUF's: {', '.join(differing)}")


if __name__ == "__main__":
    main()
