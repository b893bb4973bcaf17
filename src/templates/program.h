// SPDX-License-Identifier: Apache-2.0
// A chat template as a program: text in, text out, within limits. What the text means, and which
// of it becomes special tokens, is the business of jinja_format.h.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

struct HearthTemplate;
namespace hearth {

struct TemplateLimits {
  // Largest template seen in a public model: 20 KB.
  size_t source_bytes = size_t{256} << 10;
  // Instructions of the template machine, and bytes read or made by operations inside the
  // template: together they bound time and memory. A conversation buys more of both, per byte of
  // its context. 7,700 conversations through 77 public templates took at most 11,333 instructions
  // and 3.8 MB of work; per byte of contexts over 20 KB, 0.3 instructions and 6 bytes.
  uint64_t fuel = 200'000, fuel_per_byte = 16;
  uint64_t work = uint64_t{16} << 20, work_per_byte = 64;
  uint64_t output_bytes = uint64_t{1} << 20, output_per_byte = 8;
  // Macros (4 each) and loops inside each other while running: schemas are walked by recursion.
  uint32_t recursion = 256;
};

// Immutable once made: safe to share between threads.
class TemplateProgram {
 public:
  // kInvalid: not a template, or one that uses what chat templates may not (includes, imports).
  static Result<TemplateProgram> Compile(std::string_view source,
                                         const TemplateLimits& limits = {});

  // `context` is a JSON object, the variables of the template. kInvalid: the template refused or
  // failed; kExhausted: it ran into a limit. The message is the template's own.
  // `now`: seconds since 1970, for templates that tell a date; without one they cannot ask.
  Result<std::string> Run(std::string_view context, std::optional<int64_t> now = {}) const;

 private:
  struct Free {
    void operator()(HearthTemplate* program) const;
  };
  TemplateProgram(HearthTemplate* program, const TemplateLimits& limits)
      : program_(program), limits_(limits) {}

  std::unique_ptr<HearthTemplate, Free> program_;
  TemplateLimits limits_;
};

}  // namespace hearth
