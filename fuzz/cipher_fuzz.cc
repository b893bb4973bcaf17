// SPDX-License-Identifier: Apache-2.0
// Encrypted text that clients keep for us and send back, and Base64: what we made is read, anything
// else is nothing, and there is one spelling of everything.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "server/access/base64.h"
#include "server/access/encrypted_text.h"

namespace hearth {
namespace {

[[noreturn]] void Report(const char* wrong) {
  std::fprintf(stderr, "cipher_fuzz: %s\n", wrong);
  std::abort();
}

void CheckCipher(const std::string& text, unsigned at) {
  static const TextCipher cipher(NewCipherKey());
  // The fuzzer watches comparisons and may repeat what we made ourselves: then it is just that.
  const auto read = cipher.Decrypt(text, "a");
  if (read && cipher.Encrypt(*read, "a") != text) Report("what nobody encrypted is read");
  const std::string encrypted = cipher.Encrypt(text, "a");
  if (cipher.Decrypt(encrypted, "a") != text) Report("a text is lost");
  if (cipher.Decrypt(encrypted, "b")) Report("another tenant reads it");
  std::string changed = encrypted;
  if (changed.empty()) return;
  char& c = changed[at % changed.size()];
  c = c == 'A' ? 'B' : 'A';
  if (changed != encrypted && cipher.Decrypt(changed, "a")) Report("a changed text is read");
}

void CheckBase64(const std::string& text) {
  const auto bytes = FromBase64(text);
  if (bytes && AsBase64(*bytes) != text) Report("two spellings");
  const std::span<const unsigned char> raw(reinterpret_cast<const unsigned char*>(text.data()),
                                           text.size());
  const auto back = FromBase64(AsBase64(raw));
  if (text.empty()) return;
  if (!back || std::string(back->begin(), back->end()) != text) Report("bytes are lost");
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  hearth::CheckBase64(text);
  hearth::CheckCipher(text, size > 1 ? data[0] * 256u + data[1] : 0);
  return 0;
}
