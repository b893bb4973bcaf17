// SPDX-License-Identifier: Apache-2.0
// The keys file of a running server, which may be read again.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "platform/file.h"
#include "server/access/keys.h"
namespace hearth {

// Requests hold on to the ring they were checked with. Thread: any.
class LiveKeys {
 public:
  std::shared_ptr<const KeyRing> get() const {
    const MutexLock lock(mu_);
    return ring_;
  }
  Status Load(const std::string& path) {
    Result<std::string> text = ReadTextFile(path, size_t{16} << 20);
    if (!text.ok() && text.status().code() == Code::kNotFound) {
      return Error(Code::kNotFound, "%s; make it with `hearth key ID --keys %s`",
                   text.status().message().c_str(), path.c_str());
    }
    HEARTH_TRY(text.status());
    HEARTH_ASSIGN(KeyRing ring, KeyRing::Parse(*text).Within(path));
    if (ring.empty())
      return Error(Code::kInvalid, "%s contains no keys; add one with `hearth key ID --keys FILE`",
                   path.c_str());
    const MutexLock lock(mu_);
    ring_ = std::make_shared<const KeyRing>(std::move(ring));
    return Status();
  }

 private:
  mutable Mutex mu_;
  std::shared_ptr<const KeyRing> ring_ HEARTH_GUARDED_BY(mu_);
};

}  // namespace hearth
