// SPDX-License-Identifier: Apache-2.0
// Random numbers that cannot be foretold, from the operating system's generator: names, seeds and
// secrets. None tells anything about another, whoever asked for it, in this process or the next.
#pragma once
#include <cstdint>
#include <span>
#include <string>
namespace hearth {

// Thread: any.
void FillRandom(std::span<unsigned char> out);
uint64_t FreshNumber();
// So many bytes as hexadecimal digits.
std::string FreshHex(size_t num_bytes);

}  // namespace hearth
