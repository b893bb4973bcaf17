// SPDX-License-Identifier: Apache-2.0
#include "base/fresh_random.h"

#include <sys/random.h>

#include <cerrno>
#include <vector>

#include "base/check.h"

namespace hearth {

void FillRandom(std::span<unsigned char> out) {
  while (!out.empty()) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    // A signal may come in between. Nothing else fails: without random numbers nothing is safe.
    HEARTH_CHECK(got > 0 || errno == EINTR);
    if (got > 0) out = out.subspan(static_cast<size_t>(got));
  }
}

uint64_t FreshNumber() {
  uint64_t number = 0;
  FillRandom({reinterpret_cast<unsigned char*>(&number), sizeof number});
  return number;
}

std::string FreshHex(size_t num_bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::vector<unsigned char> bytes(num_bytes);
  FillRandom(bytes);
  std::string out;
  out.reserve(2 * num_bytes);
  for (const unsigned char byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace hearth
