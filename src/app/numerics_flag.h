// SPDX-License-Identifier: Apache-2.0
// The flag --numerics of commands that compute.
#pragma once
#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "app/flag_checks.h"
#include "backend/numerics.h"
namespace hearth {

inline CLI::Option* AddNumerics(CLI::App& sub, Numerics& numerics) {
  const std::map<std::string, Numerics> names{{"exact", Numerics::kExact},
                                              {"fast", Numerics::kFast}};
  return sub
      .add_option("--numerics", numerics,
                  "How products are computed: exact, with activations of 16 bits, or fast, with 8 "
                  "bits, which reads prompts faster and gives slightly other replies; default: "
                  "exact")
      ->type_name("NAME")
      ->transform(NamedValue(names));
}

}  // namespace hearth
