// SPDX-License-Identifier: Apache-2.0
// The C ABI of rust/hearth_templates (its abi.rs is the other half). Only program.cc calls it.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
struct HearthTemplate;

// Owned by Rust until hearth_bytes_free.
struct HearthBytes {
  unsigned char* data;
  size_t size;
};

struct HearthTemplateLimits {
  uint64_t fuel, work, output_bytes;
  int64_t now;  // seconds since 1970, for strftime_now
  uint32_t recursion;
  bool has_now;
};

// Null, and a message in `error`, when the template does not parse.
HearthTemplate* hearth_template_new(const unsigned char* source, size_t size, HearthBytes* error);

enum HearthTemplateOutcome {
  kHearthTemplateRendered = 0,
  kHearthTemplateFailed = 1,
  kHearthTemplateExhausted = 2
};
// `out` is the output when rendered, else a message. Any thread; no state is kept.
HearthTemplateOutcome hearth_template_render(const HearthTemplate* program,
                                             const unsigned char* json, size_t size,
                                             const HearthTemplateLimits* limits, HearthBytes* out);
void hearth_template_free(HearthTemplate* program);
void hearth_bytes_free(HearthBytes bytes);
}
