// SPDX-License-Identifier: Apache-2.0
// The promise about hostile text: any 1 MiB run of one kind takes at most 250 ms of one core and
// 64 KiB of stack. `tokenizer_long_runs RANKS` prints every kind and ends with 1 when one is slower
// (a stack overflow ends it otherwise).
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/check.h"
#include "text/tokenizer.h"

namespace {

constexpr size_t kBytes = size_t{1} << 20;
constexpr double kMaxMs = 250;
constexpr size_t kStackBytes = size_t{64} << 10;

struct Run {
  const char* name;
  std::string text;
};

std::string Repeated(std::string_view unit) {
  std::string text;
  while (text.size() + unit.size() <= kBytes) text += unit;
  return text;
}

// Draws units at random, so that the merging meets every pair of them.
std::string Mixed(const std::vector<std::string_view>& units) {
  std::string text;
  uint32_t seed = 1;
  while (text.size() + 4 <= kBytes) {
    seed = seed * 1664525u + 1013904223u;
    text += units[(seed >> 16) % units.size()];
  }
  return text;
}

std::string Bytes() {
  std::string text;
  uint32_t seed = 1;
  while (text.size() < kBytes) {
    seed = seed * 1664525u + 1013904223u;
    text += static_cast<char>(0x80 | (seed >> 24));
  }
  return text;
}

std::vector<Run> Runs() {
  return {{"one lower-case letter", Repeated("a")},
          {"one upper-case letter", Repeated("A")},
          {"lower-case letters", Mixed({"a", "b", "c", "d", "e", "i", "n", "o", "r", "s", "t"})},
          {"upper-case letters", Mixed({"A", "E", "I", "N", "O", "R", "S", "T"})},
          {"spaces", Repeated(" ")},
          {"newlines", Repeated("\n")},
          {"spaces and tabs", Mixed({" ", "\t"})},
          {"spaces and newlines", Mixed({" ", "\n", "\r"})},
          {"digits", Mixed({"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"})},
          {"dots", Repeated(".")},
          {"circumflexes", Repeated("^")},
          {"underscores", Repeated("_")},
          {"symbols", Mixed({"!", "?", "=", "-", "*", "#", "/", "(", ")", "<", ">", "|"})},
          {"apostrophes", Repeated("'")},
          {"contractions", Repeated("'s")},
          {"Chinese", Mixed({"中", "文", "字", "的", "是", "不", "了", "人", "在", "我"})},
          {"Devanagari", Mixed({"न", "म", "स", "्", "त", "े", "द", "ु", "ि", "य", "ा"})},
          {"combining marks", Repeated("\xcc\x81")},
          {"emoji", Mixed({"\U0001f600", "\U0001f44d", "\U0001f3fd", "\u200d"})},
          {"title-case letters", Repeated("\u01c5")},
          {"no-break spaces", Repeated("\u00a0")},
          {"NUL bytes", Repeated(std::string_view("\0", 1))},
          {"bytes that are not UTF-8", Bytes()}};
}

struct Task {
  const hearth::Tokenizer* tokenizer;
  const std::string* text;
  double ms = 0;
  size_t num_tokens = 0;
};

double ThreadMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

void* EncodeOnThread(void* argument) {
  auto* const task = static_cast<Task*>(argument);
  std::vector<hearth::Token> tokens;
  const double start = ThreadMs();
  task->tokenizer->Encode(*task->text, tokens);
  task->ms = ThreadMs() - start;
  task->num_tokens = tokens.size();
  return nullptr;
}

Task EncodeOnSmallStack(const hearth::Tokenizer& tokenizer, const std::string& text) {
  Task task{.tokenizer = &tokenizer, .text = &text};
  pthread_attr_t attributes;
  HEARTH_CHECK(pthread_attr_init(&attributes) == 0);
  HEARTH_CHECK(pthread_attr_setstacksize(&attributes, kStackBytes) == 0);
  pthread_t thread;
  HEARTH_CHECK(pthread_create(&thread, &attributes, EncodeOnThread, &task) == 0);
  HEARTH_CHECK(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream in(argv[1], std::ios::binary);
  const std::string ranks((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto tokenizer = hearth::LoadTiktoken(ranks);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.status().message().c_str());
    return 1;
  }
  double slowest = 0;
  for (const Run& run : Runs()) {
    // The better of two: the first may pay for page faults of the machine's making.
    Task task = EncodeOnSmallStack(**tokenizer, run.text);
    task.ms = std::min(task.ms, EncodeOnSmallStack(**tokenizer, run.text).ms);
    slowest = std::max(slowest, task.ms);
    std::printf("%-26s %7.1f ms  %8zu tokens\n", run.name, task.ms, task.num_tokens);
  }
  std::printf("slowest: %.1f ms of CPU time, limit %.0f, on %zu KiB of stack\n", slowest, kMaxMs,
              kStackBytes >> 10);
  return slowest <= kMaxMs ? 0 : 1;
}
