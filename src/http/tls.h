// SPDX-License-Identifier: Apache-2.0
// The certificate a listener shows: TLS 1.2 and 1.3 with forward secrecy and authenticated
// encryption only, and read anew without a restart.
#pragma once
#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "base/mutex.h"
#include "base/result.h"
#include "http/http_server.h"
namespace hearth {

// Thread: any. A connection holds on to the context it began with.
class TlsContexts {
 public:
  explicit TlsContexts(TlsFiles files) : files_(std::move(files)) {}
  // Reads certificate and key. When either is wrong, what was read before stays in use.
  Status Load();
  // Null before the first Load.
  std::shared_ptr<boost::asio::ssl::context> get() const {
    const MutexLock lock(mu_);
    return context_;
  }

 private:
  const TlsFiles files_;
  mutable Mutex mu_;
  std::shared_ptr<boost::asio::ssl::context> context_ HEARTH_GUARDED_BY(mu_);
};

}  // namespace hearth
