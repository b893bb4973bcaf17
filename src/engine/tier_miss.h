// SPDX-License-Identifier: Apache-2.0
// Why a tier did not bring what memory lacked of a prompt: for the client that wonders, and for
// whoever runs the server.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
namespace hearth {

struct TierMiss {
  enum class Why : uint8_t {
    kNone,    // there is no tier, nothing was lacking, or it brought all of it
    kAbsent,  // it does not have it, as far as it knows
    kSlower,  // it has it; computing was faster
    kLate,    // it did not answer in time
    kLost,    // what it had was damaged, had gone, or could not be read
    kBusy,    // other prompts were being fetched
  };
  Why why = Why::kNone;
  std::string tier = {};  // its name; several, with commas
};
inline constexpr size_t kNumTierMisses = 6;
inline constexpr std::array<const char*, kNumTierMisses> kTierMissNames{"none", "absent", "slower",
                                                                        "late", "lost",   "busy"};
inline const char* NameOf(TierMiss::Why why) { return kTierMissNames[static_cast<size_t>(why)]; }

// What one part of a tier brought of a prompt.
struct TierTokens {
  std::string tier;
  int tokens = 0;
};

// Prompts by why they missed; kNone stays 0.
struct TierMissCounts {
  std::string tier;
  std::array<uint64_t, kNumTierMisses> counts{};
};

}  // namespace hearth
