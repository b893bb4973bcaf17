// SPDX-License-Identifier: Apache-2.0
// JSON schemas of clients, before the grammar engine sees them: bounded, cleaned of what the engine
// would take as orders, and with what it reads too loosely made strict. Rules and reasons are in
// docs/structured-output.md.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
namespace hearth {

struct SchemaLimits {
  size_t bytes = size_t{256} << 10;  // of the text
  int depth = 64;                    // arrays and objects of the text inside each other
  size_t values = 32'768;            // of the text
  size_t schemas = 4'096;            // subschemas
  size_t enum_values = 4'096;        // of all enums together
  size_t properties = 100'000;       // sum over objects of properties squared, what they cost
  double multiple_of = 1'000;        // digits of multipleOf, its decimal point left out
  size_t lark_bytes = size_t{32} << 10;
  size_t pattern_bytes = 1'024;      // of one pattern
  size_t all_pattern_bytes = 8'192;  // of all together
  int pattern_depth = 32;            // parentheses inside each other
  int64_t count = 10'000;            // minLength, maxItems and their like
  int64_t all_counts = 100'000;      // of all together
  // How many combinations allOf may make of anyOf and oneOf: the engine writes them all out.
  double combinations = 1'024;
};

// The schema as text for the engine. kInvalid with the path of the mistake: "properties.a.enum:
// ...". kUnsupported: a keyword that the engine could not enforce.
Result<std::string> PrepareSchemaText(std::string_view text, const SchemaLimits& limits = {});
Result<std::string> PrepareSchema(const Json& schema, const SchemaLimits& limits = {});
// Only whether they would: takes microseconds.
Status CheckSchema(const Json& schema, const SchemaLimits& limits = {});

// The same bounds for a regular expression or grammar that comes by itself.
Status CheckPattern(std::string_view pattern, const SchemaLimits& limits = {});
Status CheckLark(std::string_view text, const SchemaLimits& limits = {});

}  // namespace hearth
