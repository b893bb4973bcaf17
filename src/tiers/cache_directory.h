// SPDX-License-Identifier: Apache-2.0
// The directory of a cache on disk: a mark with the version of its layout, the secret that its keys
// are made with, a store for each model, and what is known of model files.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clocks.h"
#include "base/result.h"
namespace hearth {

// At the end of `about` of a store whose records are encrypted.
inline constexpr const char* kEncryptedMark = " (encrypted)";

//   hearth-cache-1      the mark
//   key                 the secret, its owner's alone
//   clock               its age (base/age_clock.h)
//   digests             of model files, by what the file system says of them
//   models/HEX/about    whose blocks these are
//   models/HEX/blocks/  the store (disk_store.h)
//
// Thread: one. Several processes may have it open.
class CacheDirectory {
 public:
  // Makes it, if it is not there or empty. kInvalid: it is something else's; kUnsupported: of
  // another version.
  static Result<CacheDirectory> Open(const std::string& path);
  // The same, but what is not there is kNotFound.
  static Result<CacheDirectory> Find(const std::string& path);

  const std::string& path() const { return path_; }
  // The same for everybody who opens it; made at first use.
  Result<std::string> Secret() const;

  struct Store {
    std::string name;    // HEX
    std::string about;   // a line for people; empty: unknown
    std::string blocks;  // where DiskStore is
    int64_t num_bytes = 0;
    int64_t used_at_s =
        0;  // when somebody opened it last, by the directory's age, near to the date
  };
  std::vector<Store> Stores() const;  // the one used last first
  // The store of blocks with this content; notes that it is used now.
  Result<std::string> UseStore(uint64_t content, const std::string& about,
                               const ClockFn& clocks = ReadClocks) const;
  // How long it has been (base/age_clock.h), and where that is kept.
  int64_t Age(const ClockFn& clocks = ReadClocks) const;
  std::string clock_path() const { return path_ + "/clock"; }
  Status Remove(const Store& store) const;  // an error when it is open

  // A digest that was remembered for files of which the file system says just this.
  std::optional<uint64_t> DigestOf(const std::string& identity) const;
  // Fails without harm.
  Status RememberDigest(const std::string& identity, uint64_t digest) const;

 private:
  explicit CacheDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace hearth
