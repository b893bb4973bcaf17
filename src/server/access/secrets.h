// SPDX-License-Identifier: Apache-2.0
// Everything that a server keeps secret follows from one root, and each purpose has a secret of its
// own: what is learned of one tells nothing of another. All purposes are in this file.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string>
namespace hearth {

// HKDF-SHA-256 (RFC 5869) with these as its `info`; their names are in secrets.cc. A purpose whose
// use changes gets a new name, so that no secret was ever used in two ways.
enum class Purpose : unsigned char {
  // Of the root that servers share with --cache-key or --cache-dir, workers with their supervisor;
  // else made at the start.
  kEventIds,        // encrypts the ids of server-sent events (server/turns/event_ids.h)
  kCacheDomains,    // keeps the cached work of keys apart (domain.h)
  kBlockNames,      // the keys of cached blocks outside of the process (kv/content_seed.h)
  kBlockRecords,    // encrypts those blocks (tiers/record_seal.h), with --cache-key
  kJournalRecords,  // encrypts the journal of replies outside of the process
  // Of the root that is stored with the responses.
  kThoughts,       // encrypts the thoughts that clients keep (encrypted_text.h)
  kThoughtNonces,  // and makes the nonces of that
};
inline constexpr size_t kNumPurposes = 7;

// Seeds of replies, the names of replies, requests, files and batches, and the ids of spans are no
// secrets that anybody shares: each is drawn anew (base/fresh_random.h).

// Thread: any.
class Secrets {
 public:
  // `root` may have any length but none.
  explicit Secrets(std::string root);
  // Of this process alone.
  static Secrets Fresh();

  template <size_t kBytes = 32>
  std::array<unsigned char, kBytes> For(Purpose purpose) const {
    std::array<unsigned char, kBytes> out;
    Fill(purpose, out);
    return out;
  }
  // The same where a secret is a text, of 32 bytes.
  std::string TextFor(Purpose purpose) const;

 private:
  void Fill(Purpose purpose, std::span<unsigned char> out) const;
  const std::string root_;
};

}  // namespace hearth
