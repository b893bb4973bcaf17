// SPDX-License-Identifier: Apache-2.0
// Addresses of Redis servers: what is accepted is written and read again as the same, and neither
// names nor errors show a password.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tiers/redis_address.h"

namespace hearth {
namespace {

[[noreturn]] void Report(const char* wrong, const std::string& text) {
  std::fprintf(stderr, "address_fuzz: %s: %s\n", wrong, text.c_str());
  std::abort();
}

void Check(const std::string& text) {
  Result<std::vector<RedisAddress>> addresses = ParseRedisAddresses(text);
  if (!addresses.ok()) {
    if (addresses.status().message().empty()) Report("refused without a word", text);
    return;
  }
  for (const RedisAddress& address : *addresses) {
    Result<RedisAddress> again = ParseRedisAddress(address.name());
    if (!again.ok()) Report("its name is not an address", address.name());
    RedisAddress bare = address;
    bare.user.clear();
    bare.password.clear();
    if (*again != bare) Report("its name is another's", address.name());
    if (address.port < 1 || address.port > 65535 || address.host.empty()) Report("nowhere", text);
  }
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hearth::Check(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
