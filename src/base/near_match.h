// SPDX-License-Identifier: Apache-2.0
// Which known name was probably meant by a mistyped one.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
namespace hearth {

// Letters to insert, remove, change or swap with their neighbour until one is the other. Takes time
// and memory in proportion to the sizes: bound what comes from outside.
size_t EditDistance(std::string_view a, std::string_view b);

// The known name that differs least, if it differs little: at most two letters, or a quarter of a
// long name. Empty when none does.
std::string NearMatch(std::string_view name, std::span<const std::string> known);

// `; did you mean "port"?`, or nothing.
std::string DidYouMean(std::string_view name, std::span<const std::string> known);

}  // namespace hearth
