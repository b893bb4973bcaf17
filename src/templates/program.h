// SPDX-License-Identifier: Apache-2.0
// A chat template as a program: text in, text out, within limits. What the text means, and which
// of it becomes special tokens, is the business of jinja_format.h.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct HearthTemplate;
namespace hearth {

struct TemplateLimits {
  // Largest template seen in a public model: 20 KB.
  size_t source_bytes = size_t{256} << 10;
  // Instructions of the template machine. A turn of the longest public template takes about 300.
  uint64_t fuel = 2'000'000;
  // Bytes read or written by operations inside the template, in total: bounds time and memory.
  uint64_t work = uint64_t{1} << 30;
  uint64_t output_bytes = uint64_t{64} << 20;
  // Macros and loops inside each other while running.
  uint32_t recursion = 64;
};

// Immutable once made: safe to share between threads.
class TemplateProgram {
 public:
  // kInvalid: not a template, or one that uses what chat templates may not (includes, imports).
  static Result<TemplateProgram> Compile(std::string_view source,
                                         const TemplateLimits& limits = {});

  // `context` is a JSON object, the variables of the template. kInvalid: the template refused or
  // failed; kExhausted: it ran into a limit. The message is the template's own.
  Result<std::string> Run(std::string_view context) const;

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
