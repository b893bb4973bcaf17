// SPDX-License-Identifier: Apache-2.0
// Bytes as letters: RFC 4648's base64, padded.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
namespace hearth {

std::string AsBase64(std::span<const unsigned char> bytes);
// Nothing for an empty text, or one that AsBase64 does not make: no bytes have two spellings.
std::optional<std::vector<unsigned char>> FromBase64(std::string_view text);

}  // namespace hearth
