// SPDX-License-Identifier: Apache-2.0
// The least memory bandwidth at which one user's decode reaches a wanted speed, from what a token
// reads and from what more bandwidth does not shorten. Pure.
#pragma once
#include <string>

#include "plan/machine.h"
#include "plan/times.h"
namespace hearth {

inline constexpr double kHeadlineRate = 30;  // tokens per second: faster than most people read

// The end of a loop over the threads, measured here.
struct LoopCost {
  int threads = 1;          // here
  double look_seconds = 0;  // that each further thread adds
};

struct Headline {
  double wanted = kHeadlineRate;
  double bytes = 0;         // that the products of a token read
  double read_share = 0;    // of the stream read, what they reach here
  double serial_s = 0;      // of a token: small operations and attention, as on that machine
  double loops_s = 0;       // of a token: loop ends on that many cores
  double least_stream = 0;  // bytes per second that all threads must read together; 0: impossible
  double serial_share = 0;  // of a step on that machine, what is neither shared nor reading
  double rate = 0;          // tokens per second there
};

// `there` are the times on the machine in question, `here` those that were measured. The time of a
// loop's end grows by one look of the caller for each further thread.
Headline HeadlineOf(const ModelTimes& here, const ModelTimes& there, const MachineRates& rates,
                    const LoopCost& loop, int loops_per_step);

// "30 tokens/s for one user need ... GB/s"
std::string HeadlineText(const Headline& headline);

// Loops that a step of one token shares out: products, attention and the feed-forward's activation.
int LoopsPerStep(int layers, int n_experts);

}  // namespace hearth
