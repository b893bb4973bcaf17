// SPDX-License-Identifier: Apache-2.0
// Threads that give way: whoever is being answered goes before who waits for a block.
#pragma once
#include <sys/resource.h>
#include <unistd.h>
namespace hearth {

// Linux gives each thread its own; where that fails it is only less polite.
inline void BeNice(int niceness) {
  if (niceness <= 0) return;
  const auto self = static_cast<id_t>(::gettid());
  ::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + niceness);
}

}  // namespace hearth
