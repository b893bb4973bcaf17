#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hearth run on real terminals: scenes_test.py PROGRAM ci|rest|NAME... plays them one by one."""
import inspect
import sys
import time

import scenes_commands
import scenes_showing
import scenes_typing

# One of each kind for every change; the rest at night.
CI = ("a_turn", "editing_keys", "history_keys", "a_paste_is_one_message",
      "interrupt_at_an_empty_prompt", "interrupt_half_a_line", "interrupt_while_streaming",
      "markdown", "plain", "a_pipe_in_and_out", "a_broken_pipe", "the_cache_in_process")
NOT_SCENES = {"talker", "screen_reader", "local", "cached"}


def all_scenes():
    """Every function of the scenes' files that asks for nothing, in order."""
    found = {}
    for module in (scenes_typing, scenes_showing, scenes_commands):
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                if name not in NOT_SCENES:
                    found[name] = function
    return found


def main():
    scenes = all_scenes()
    wanted = sys.argv[2:]
    if wanted == ["ci"]:
        wanted = CI
    elif wanted == ["rest"]:
        wanted = [name for name in scenes if name not in CI]
    if set(wanted) - set(scenes) or len(scenes) < 40:
        sys.exit(f"FAILED: {len(scenes)} scenes; unknown: {sorted(set(wanted) - set(scenes))}")
    for name in wanted:
        began = time.monotonic()
        print(name, end=" ", flush=True)
        scenes[name]()
        print(f"{time.monotonic() - began:.1f} s", flush=True)
    print(f"{len(wanted)} of {len(scenes)} scenes")


main()
