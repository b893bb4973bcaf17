// SPDX-License-Identifier: Apache-2.0
#include "server/access/reply_origin.h"

#include <openssl/evp.h>

#include <cstring>
#include <memory>
#include <new>

#include "base/check.h"
#include "server/access/or_no_memory.h"

namespace hearth {
namespace {

constexpr size_t kIdBytes = 12;

void Put(uint64_t number, std::string& out) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(number >> shift & 0xff);
}

uint64_t Take(std::string_view& from) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) {
    number |= uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
  }
  from.remove_prefix(8);
  return number;
}

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string AsBytes(const ReplyOrigin& origin) {
  HEARTH_CHECK(origin.id.size() == 2 * kIdBytes);
  std::string out;
  for (size_t i = 0; i < origin.id.size(); i += 2) {
    const int high = DigitOf(origin.id[i]), low = DigitOf(origin.id[i + 1]);
    HEARTH_CHECK(high >= 0 && low >= 0);
    out += static_cast<char>(high << 4 | low);
  }
  Put(static_cast<uint64_t>(origin.created_s), out);
  Put(origin.seed, out);
  Put(origin.request[0], out);
  Put(origin.request[1], out);
  Put(origin.basis, out);
  HEARTH_CHECK(out.size() == kOriginBytes);
  return out;
}

std::optional<ReplyOrigin> ReplyOriginFrom(std::string_view bytes) {
  if (bytes.size() != kOriginBytes) return std::nullopt;
  ReplyOrigin origin;
  for (const char c : bytes.substr(0, kIdBytes)) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    origin.id += kDigits[byte >> 4];
    origin.id += kDigits[byte & 15];
  }
  bytes.remove_prefix(kIdBytes);
  origin.created_s = static_cast<int64_t>(Take(bytes));
  origin.seed = Take(bytes);
  origin.request[0] = Take(bytes);
  origin.request[1] = Take(bytes);
  origin.basis = Take(bytes);
  return origin;
}

uint64_t BasisOf(std::span<const std::string> words, std::span<const Token> prompt,
                 uint64_t before) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  if (context == nullptr) throw std::bad_alloc();
  const auto add = [&](const void* data, size_t size) {
    OrNoMemory(EVP_DigestUpdate(context.get(), data, size) == 1);
  };
  OrNoMemory(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1);
  add(&before, sizeof before);
  for (const std::string& word : words) {
    const uint64_t size = word.size();  // keeps neighbours apart
    add(&size, sizeof size);
    add(word.data(), word.size());
  }
  add(prompt.data(), prompt.size_bytes());
  std::array<unsigned char, 32> digest{};
  OrNoMemory(EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1);
  uint64_t out = 0;
  std::memcpy(&out, digest.data(), sizeof out);
  return out;
}

}  // namespace hearth
