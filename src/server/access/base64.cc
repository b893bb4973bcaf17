// SPDX-License-Identifier: Apache-2.0
#include "server/access/base64.h"

#include <openssl/evp.h>

namespace hearth {

std::string AsBase64(std::span<const unsigned char> bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');  // the encoder ends with a NUL
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes.data(),
                                   static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

std::optional<std::vector<unsigned char>> FromBase64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  std::vector<unsigned char> out(text.size() / 4 * 3);
  if (EVP_DecodeBlock(out.data(), reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size())) < 0) {
    return std::nullopt;
  }
  // The decoder counts padding as bytes.
  for (size_t i = text.size(); i > text.size() - 2 && text[i - 1] == '='; --i) out.pop_back();
  // Bits that no byte has would be a second spelling of the same.
  if (AsBase64(out) != text) return std::nullopt;
  return out;
}

}  // namespace hearth
