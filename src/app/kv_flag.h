// SPDX-License-Identifier: Apache-2.0
// The flag --kv-type of commands that compute.
#pragma once
#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "app/flag_checks.h"
#include "kv/layout.h"
namespace hearth {

inline CLI::Option* AddKvType(CLI::App& sub, KvCode& code) {
  const std::map<std::string, KvCode> codes{{"int16", KvCode::kInt16}, {"int8", KvCode::kInt8}};
  return sub
      .add_option("--kv-type", code,
                  "What the KV cache holds: int16, or int8, which takes half the memory and gives "
                  "slightly other replies; default: int16")
      ->type_name("TYPE")
      ->transform(NamedValue(codes));
}

}  // namespace hearth
