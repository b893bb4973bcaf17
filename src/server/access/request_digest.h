// SPDX-License-Identifier: Apache-2.0
// A request's fingerprint: equal for the same path and body, and nothing can be read from it.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
namespace hearth {

// The first half of a SHA-256, which nobody can aim at another's request.
std::array<uint64_t, 2> DigestOfRequest(std::string_view path, std::string_view body);

}  // namespace hearth
