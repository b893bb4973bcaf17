// SPDX-License-Identifier: Apache-2.0
// Times Encode on a file: `tokenizer_speed RANKS TEXT ROUNDS` prints the best round in seconds and
// a checksum of the tokens. Driven by speed.py, which times the official tokenizer in turns.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace {

std::string ReadAll(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

// CPU time, not wall time: a busy machine must not decide the comparison.
double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  auto tokenizer = hearth::LoadTiktoken(ReadAll(argv[1]));
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.status().message().c_str());
    return 1;
  }
  const std::string text = ReadAll(argv[2]);
  double best = 1e9;
  std::vector<hearth::Token> tokens;
  for (int round = std::atoi(argv[3]); round > 0; --round) {
    tokens.clear();
    const double start = ThreadSeconds();
    (*tokenizer)->Encode(text, tokens);
    best = std::min(best, ThreadSeconds() - start);
  }
  uint64_t checksum = 0;
  for (const hearth::Token token : tokens)
    checksum = checksum * 1000003 + static_cast<uint64_t>(token);
  std::printf("{\"seconds\": %.6f, \"tokens\": %zu, \"checksum\": %llu}\n", best, tokens.size(),
              static_cast<unsigned long long>(checksum));
  return 0;
}
