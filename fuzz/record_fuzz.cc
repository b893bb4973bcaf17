// SPDX-License-Identifier: Apache-2.0
// Records of KV blocks as a disk or another machine may return them: nothing but what was stored is
// taken for it, and a seal opens nothing that was not sealed.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "kv/block_record.h"
#include "tiers/record_seal.h"

namespace hearth {
namespace {

[[noreturn]] void Report(const char* wrong) {
  std::fprintf(stderr, "record_fuzz: %s\n", wrong);
  std::abort();
}

using Bytes = std::vector<std::byte>;

// Flips what the input says, and says whether anything is another byte now.
Bytes Changed(const Bytes& record, std::span<const std::byte> how) {
  Bytes out = record;
  for (size_t i = 0; i + 2 < how.size(); i += 3) {
    const size_t at = (std::to_integer<size_t>(how[i]) << 8 | std::to_integer<size_t>(how[i + 1]));
    if (at % 7 == 6) {
      out.resize(out.size() - std::min(out.size(), at % 5));
    } else if (!out.empty()) {
      out[at % out.size()] ^= how[i + 2];
    }
  }
  return out;
}

void CheckRecord(std::span<const std::byte> input, std::span<const std::byte> how) {
  const TierKey key{{11, input.size()}, 2};
  const std::vector<Token> tokens(16, static_cast<Token>(input.size()));
  Bytes record = MakeRecord(key, tokens, input.size());
  std::ranges::copy(input, PayloadOf(record, input.size()).begin());
  FinishRecord(record);
  const auto whole = ReadRecord(record, key, tokens, input.size());
  if (!IsIntact(record) || !whole || !std::ranges::equal(*whole, input)) Report("a record is lost");
  const Bytes changed = Changed(record, how);
  const auto read = ReadRecord(changed, key, tokens, input.size());
  if (changed != record && read && IsIntact(changed)) Report("a changed record is believed");
  static const RecordSeal seal("secret");
  const Bytes sealed = seal.Seal(key, record);
  if (seal.Open(key, sealed) != record) Report("a sealed record is lost");
  const Bytes forged = Changed(sealed, how);
  if (forged != sealed && seal.Open(key, forged)) Report("a forged record is opened");
}

void CheckRaw(std::span<const std::byte> input) {
  static const RecordSeal seal("secret");
  if (seal.Open({{1, 2}, 0}, input)) Report("what nobody sealed is opened");
  TierKey key;
  if (input.size() >= 24) {
    std::memcpy(&key.block, input.data() + 8, sizeof key.block);
    std::memcpy(&key.group, input.data() + 4, sizeof key.group);
  }
  const std::vector<Token> tokens(16, 0);
  for (const size_t size : {size_t{0}, size_t{16}, input.size(), SIZE_MAX - 7}) {
    const auto bytes = ReadRecord(input, key, tokens, size);
    if (!bytes) continue;
    const bool is_inside = bytes->data() >= input.data() &&
                           bytes->data() + bytes->size() <= input.data() + input.size();
    if (!is_inside || bytes->size() != size) Report("bytes beyond the record");
  }
  IsIntact(input);
  IsRecordOf(input, key);
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> input(reinterpret_cast<const std::byte*>(data), size);
  hearth::CheckRaw(input);
  hearth::CheckRecord(input.subspan(size / 2), input.first(size / 2));
  return 0;
}
