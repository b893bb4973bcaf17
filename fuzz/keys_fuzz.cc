// SPDX-License-Identifier: Apache-2.0
// The keys file: whatever is accepted is a list of as many entries under as many names, opens for
// no key that is not in it, and is read the same twice.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "base/json.h"
#include "server/access/keys.h"

namespace hearth {
namespace {

[[noreturn]] void Report(const char* wrong, const std::string& text) {
  std::fprintf(stderr, "keys_fuzz: %s: %s\n", wrong, text.c_str());
  std::abort();
}

void Check(const std::string& text) {
  Result<KeyRing> ring = KeyRing::Parse(text);
  Result<KeyRing> again = KeyRing::Parse(text);
  if (ring.ok() != again.ok()) Report("read differently twice", text);
  if (!ring.ok()) {
    if (ring.status().message().empty()) Report("refused without a word", text);
    return;
  }
  // The twin: what any JSON parser sees.
  Result<Json> json = ParseJson(text);
  if (!json.ok()) Report("accepted, and no JSON", text);
  const Json* keys = json->Find("keys");
  if (keys == nullptr || keys->array() == nullptr) Report("accepted without a list", text);
  std::set<std::string> ids;
  for (const Json& entry : *keys->array()) ids.insert(*entry.Find("id")->string());
  if (ids.size() != ring->size() || keys->array()->size() != ring->size()) {
    Report("entries were lost or doubled", text);
  }
  for (const std::string& id : ids) {
    if (ring->Find(id) != nullptr) Report("a name opens", id);
  }
  if (ring->Find("") != nullptr || ring->Find(text) != nullptr) Report("it opens", text);
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hearth::Check(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
