// SPDX-License-Identifier: Apache-2.0
#include "server/access/reply_origin.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "base/check.h"
#include "server/access/base64.h"
#include "server/access/keyed_sum.h"
#include "server/access/or_no_memory.h"

namespace hearth {
namespace {

// One byte of version, then id, time, seed, digests and tag. With the version a multiple of three:
// the text has no padding.
constexpr unsigned char kVersion = 1;
constexpr size_t kIdBytes = 12, kTagBytes = 16;
constexpr size_t kPlainBytes = 1 + kIdBytes + 8 + 8 + 16 + 8;
static_assert((kPlainBytes + kTagBytes) / 3 * 4 == OriginSeal::kSealedBytes);

using Tag = std::array<unsigned char, kTagBytes>;

Tag TagOf(const CipherKey& key, std::string_view plain, const std::string& tenant) {
  const KeyedSum sum = SumOf(key, tenant, plain);
  Tag tag;
  std::memcpy(tag.data(), sum.data(), tag.size());
  return tag;
}

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

std::string OriginSeal::Seal(const ReplyOrigin& origin, const std::string& tenant) const {
  HEARTH_CHECK(origin.id.size() == 2 * kIdBytes);
  std::string plain(1, static_cast<char>(kVersion));
  for (size_t i = 0; i < origin.id.size(); i += 2) {
    const int high = DigitOf(origin.id[i]), low = DigitOf(origin.id[i + 1]);
    HEARTH_CHECK(high >= 0 && low >= 0);
    plain += static_cast<char>(high << 4 | low);
  }
  Put(static_cast<uint64_t>(origin.created_s), plain);
  Put(origin.seed, plain);
  Put(origin.request[0], plain);
  Put(origin.request[1], plain);
  Put(origin.basis, plain);
  const Tag tag = TagOf(key_, plain, tenant);
  std::vector<unsigned char> bytes(plain.begin(), plain.end());
  bytes.insert(bytes.end(), tag.begin(), tag.end());
  return AsBase64(bytes);
}

std::optional<ReplyOrigin> OriginSeal::Open(std::string_view sealed,
                                            const std::string& tenant) const {
  if (sealed.size() != kSealedBytes) return std::nullopt;
  const auto bytes = FromBase64(sealed);
  if (!bytes || bytes->size() != kPlainBytes + kTagBytes) return std::nullopt;
  const std::string plain(bytes->begin(), bytes->begin() + kPlainBytes);
  const Tag tag = TagOf(key_, plain, tenant);
  if (CRYPTO_memcmp(tag.data(), bytes->data() + kPlainBytes, tag.size()) != 0) return std::nullopt;
  if ((*bytes)[0] != kVersion) return std::nullopt;
  ReplyOrigin origin;
  std::string_view rest = std::string_view(plain).substr(1);
  for (size_t i = 0; i < kIdBytes; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(rest[i]);
    origin.id += kDigits[byte >> 4];
    origin.id += kDigits[byte & 15];
  }
  rest.remove_prefix(kIdBytes);
  origin.created_s = static_cast<int64_t>(Take(rest));
  origin.seed = Take(rest);
  origin.request[0] = Take(rest);
  origin.request[1] = Take(rest);
  origin.basis = Take(rest);
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

CipherKey KeyFrom(std::string_view secret, std::string_view purpose) {
  return SumOf(secret, purpose);
}

}  // namespace hearth
