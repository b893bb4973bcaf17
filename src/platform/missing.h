// SPDX-License-Identifier: Apache-2.0
// What the system did not let us have: huge pages, pinned threads, memory by node. Each costs speed
// only, so whoever misses it says so here and goes on; the program tells people, once.
#pragma once
#include <string>
#include <vector>

namespace hearth {

inline constexpr char kNoMemoryNodes[] =
    "mbind is refused: memory lies where the system puts it, not by memory node";

// A sentence: what is refused, and what that costs. The same one twice counts once. Thread: any.
void NoteMissing(std::string sentence);
// What was noted since the last call, in order. Thread: any.
std::vector<std::string> TakeMissing();

}  // namespace hearth
