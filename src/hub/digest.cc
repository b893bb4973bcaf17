// SPDX-License-Identifier: Apache-2.0
#include "hub/digest.h"

#include <openssl/evp.h>

#include <array>

#include "base/check.h"
#include "base/result.h"

namespace hearth {

struct Digester::Impl {
  DigestKind kind;
  EVP_MD_CTX* context = nullptr;
};

std::string Digest::text() const {
  switch (kind) {
    case DigestKind::kNone:
      return "";
    case DigestKind::kSha256:
      return "sha256:" + hex;
    case DigestKind::kGitBlob:
      return "git:" + hex;
  }
  return "";
}

std::optional<Digest> ParseDigest(DigestKind kind, std::string_view hex) {
  const size_t length = kind == DigestKind::kSha256 ? 64 : 40;
  if (kind == DigestKind::kNone || hex.size() != length) return std::nullopt;
  Digest digest{.kind = kind};
  for (const char c : hex) {
    const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    if (!((lower >= '0' && lower <= '9') || (lower >= 'a' && lower <= 'f'))) return std::nullopt;
    digest.hex += lower;
  }
  return digest;
}

Digester::Digester(DigestKind kind, uint64_t file_bytes) : impl_(new Impl{kind}) {
  if (kind == DigestKind::kNone) return;
  impl_->context = EVP_MD_CTX_new();
  HEARTH_CHECK(impl_->context != nullptr);
  const EVP_MD* sum = kind == DigestKind::kSha256 ? EVP_sha256() : EVP_sha1();
  HEARTH_CHECK(EVP_DigestInit_ex(impl_->context, sum, nullptr) == 1);
  if (kind != DigestKind::kGitBlob) return;
  const std::string head = "blob " + std::to_string(file_bytes);
  Add(std::as_bytes(std::span(head.data(), head.size() + 1)));  // with its closing zero
}

Digester::~Digester() { EVP_MD_CTX_free(impl_->context); }

void Digester::Add(std::span<const std::byte> bytes) {
  if (impl_->context == nullptr) return;
  HEARTH_CHECK(EVP_DigestUpdate(impl_->context, bytes.data(), bytes.size()) == 1);
}

Digest Digester::Finish() {
  Digest digest{.kind = impl_->kind};
  if (impl_->context == nullptr) return digest;
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum;
  unsigned length = 0;
  HEARTH_CHECK(EVP_DigestFinal_ex(impl_->context, sum.data(), &length) == 1);
  for (unsigned i = 0; i < length; ++i) digest.hex += Printf("%02x", sum[i]);
  return digest;
}

}  // namespace hearth
