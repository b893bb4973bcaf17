// SPDX-License-Identifier: Apache-2.0
// What makes block keys name the same content in every process.
#pragma once
#include <cstdint>
#include <string_view>

#include "kv/layout.h"
namespace hearth {

// All that decides the bytes of a block beside its tokens.
struct BlockContent {
  uint64_t model_digest = 0;  // of the weights and the model's description
  int numerics_version = 0;
  KvLayout layout;          // the numbers of blocks do not matter
  std::string_view secret;  // of whoever may share: without it nobody can tell which prompts exist
};

// For KvPolicy::key_seed.
uint64_t ContentSeed(const BlockContent& content);

}  // namespace hearth
