// SPDX-License-Identifier: Apache-2.0
#include "tiers/record_seal.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstring>
#include <limits>
#include <memory>

#include "base/check.h"

namespace hearth {
namespace {

// One byte of version, then nonce, tag and ciphertext. AES-256-GCM: two instructions of every
// processor that we run on do the work, at several gigabytes a second.
constexpr unsigned char kVersion = 1;
constexpr size_t kNonceBytes = 12, kTagBytes = 16;
constexpr size_t kNonceAt = 1, kTagAt = kNonceAt + kNonceBytes, kTextAt = kTagAt + kTagBytes;
static_assert(kTextAt == RecordSeal::kExtraBytes);

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;
Context NewContext() { return {EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free}; }

unsigned char* Bytes(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* Bytes(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

// What is authenticated beside the record: whose it is, and how it was sealed.
std::array<unsigned char, 21> Context21(const TierKey& key) {
  std::array<unsigned char, 21> out{kVersion};
  const auto group = static_cast<uint32_t>(key.group);
  std::memcpy(out.data() + 1, &key.block.lo, 8);
  std::memcpy(out.data() + 9, &key.block.hi, 8);
  std::memcpy(out.data() + 17, &group, 4);
  return out;
}

bool Fits(size_t size) { return size <= static_cast<size_t>(std::numeric_limits<int>::max()) / 2; }

}  // namespace

RecordSeal::RecordSeal(std::string_view secret) {
  constexpr std::string_view kPurpose = "hearth cache record, version 1";
  unsigned int size = 0;
  const auto* const done = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                                reinterpret_cast<const unsigned char*>(kPurpose.data()),
                                kPurpose.size(), key_.data(), &size);
  HEARTH_CHECK(done != nullptr && size == key_.size());
}

std::vector<std::byte> RecordSeal::Seal(const TierKey& key,
                                        std::span<const std::byte> record) const {
  const Context context = NewContext();
  if (!context || !Fits(record.size())) return {};
  std::vector<std::byte> out(kExtraBytes + record.size());
  out[0] = std::byte{kVersion};
  // 2^32 records under one key are safe with random nonces: a petabyte.
  if (RAND_bytes(Bytes(out.data() + kNonceAt), kNonceBytes) != 1) return {};
  const auto about = Context21(key);
  int size = 0;
  const bool is_done =
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(),
                         Bytes(out.data() + kNonceAt)) == 1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &size, about.data(), about.size()) == 1 &&
      EVP_EncryptUpdate(context.get(), Bytes(out.data() + kTextAt), &size, Bytes(record.data()),
                        static_cast<int>(record.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), Bytes(out.data() + kTextAt) + size, &size) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, out.data() + kTagAt) == 1;
  if (!is_done) return {};
  return out;
}

bool RecordSeal::OpenTo(const TierKey& key, std::span<const std::byte> sealed,
                        std::byte* out) const {
  if (sealed.size() < kExtraBytes || !Fits(sealed.size())) return false;
  if (sealed[0] != std::byte{kVersion}) return false;
  const Context context = NewContext();
  if (!context) return false;
  std::array<unsigned char, kTagBytes> tag{};
  std::memcpy(tag.data(), sealed.data() + kTagAt, kTagBytes);
  const auto about = Context21(key);
  const std::span<const std::byte> text = sealed.subspan(kTextAt);
  int size = 0;
  return EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(),
                            Bytes(sealed.data() + kNonceAt)) == 1 &&
         EVP_DecryptUpdate(context.get(), nullptr, &size, about.data(), about.size()) == 1 &&
         EVP_DecryptUpdate(context.get(), Bytes(out), &size, Bytes(text.data()),
                           static_cast<int>(text.size())) == 1 &&
         EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1 &&
         EVP_DecryptFinal_ex(context.get(), Bytes(out) + size, &size) == 1;
}

std::optional<std::vector<std::byte>> RecordSeal::Open(const TierKey& key,
                                                       std::span<const std::byte> sealed) const {
  if (sealed.size() < kExtraBytes) return std::nullopt;
  std::vector<std::byte> out(sealed.size() - kExtraBytes);
  if (!OpenTo(key, sealed, out.data())) return std::nullopt;
  return out;
}

std::optional<std::span<std::byte>> RecordSeal::OpenInPlace(const TierKey& key,
                                                            std::span<std::byte> sealed) const {
  if (sealed.size() < kExtraBytes) return std::nullopt;
  const std::span<std::byte> text = sealed.subspan(kTextAt);
  if (!OpenTo(key, sealed, text.data())) return std::nullopt;
  return text;
}

}  // namespace hearth
