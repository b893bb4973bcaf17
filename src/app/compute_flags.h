// SPDX-License-Identifier: Apache-2.0
// The flags --isa and --threads of commands that compute.
#pragma once
#include <CLI/CLI.hpp>
#include <vector>

#include "app/flag_checks.h"
#include "app/open_backend.h"
#include "base/result.h"
#include "platform/isa.h"
namespace hearth {

inline CLI::Option* AddIsa(CLI::App& sub, BackendFlags& hardware) {
  return sub.add_option(
      "--isa", hardware.isa,
      Printf("Instruction set: %s; default: the best this CPU has", IsaNames().c_str()));
}

inline CLI::Option* AddThreads(CLI::App& sub, BackendFlags& hardware) {
  return sub
      .add_option("--threads", hardware.num_threads,
                  "Number of threads; default: one per core that the cgroup allows")
      ->check(Between(1, 1024));
}

inline CLI::Option* AddWeights(CLI::App& sub, BackendFlags& hardware) {
  return sub
      .add_option("--weights", hardware.weights,
                  "Quantize 16-bit and 32-bit weights of a GGUF file while loading: int8 or int4; "
                  "takes less memory and gives other replies. Default: weights stay as they are")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"int8", "int4"}));
}

inline std::vector<CLI::Option*> AddPaging(CLI::App& sub, PagingFlags& paging) {
  return {sub.add_flag("--allow-paging", paging.is_allowed,
                       "If a model does not fit in memory, read its experts from disk when they "
                       "are needed; needs a packed file. Slower by far, same replies"),
          sub.add_option("--expert-memory", paging.expert_bytes,
                         "With --allow-paging: maximum memory for experts, such as 4GiB; default: "
                         "what is left")
              ->option_text("SIZE")
              ->transform(Size())};
}

}  // namespace hearth
