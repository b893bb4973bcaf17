// SPDX-License-Identifier: Apache-2.0
// A request's fingerprint: equal for the same path and body, and nothing can be read from it.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "base/json.h"
namespace hearth {

// The first half of a SHA-256, which nobody can aim at another's request.
std::array<uint64_t, 2> DigestOfRequest(std::string_view path, std::string_view body);
// The same of one key's request: what one key asked says nothing about another's. `owner` is
// empty where there are no keys, and everybody is one tenant.
std::array<uint64_t, 2> DigestOfRequest(std::string_view owner, std::string_view path,
                                        std::string_view body);
// Of what the body says, not of how it is written: a balancer may read it and write it again, with
// its members in another order, other spaces and 1 for 1.0.
std::array<uint64_t, 2> DigestOfJsonRequest(std::string_view path, const Json& body);

}  // namespace hearth
