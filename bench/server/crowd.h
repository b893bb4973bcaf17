// SPDX-License-Identifier: Apache-2.0
// A crowd that holds connections and hardly uses them: idle ones, writers of a byte a second,
// readers of a few.
#pragma once
#include <functional>

#include "base/json.h"
namespace hearth {

struct CrowdOptions {
  int port = 0, num_sources = 64;
  int num_idle = 0, num_slow_writers = 0, num_slow_readers = 0;
  int reader_tokens = 64;       // of the stream that a slow reader asks for
  int reader_bytes_per_s = 64;  // of it, that it takes
  int opened_per_s = 4000;
};

// Opens everybody, calls `on_ready`, and keeps them open (whom the server cuts comes again) until
// `is_over`. What became of them, as JSON.
Json RunCrowd(const CrowdOptions& options, const std::function<void()>& on_ready,
              const std::function<bool()>& is_over);

}  // namespace hearth
