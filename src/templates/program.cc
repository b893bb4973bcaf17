// SPDX-License-Identifier: Apache-2.0
// The C++ side of the C ABI of rust/hearth_templates.
#include "templates/program.h"

#include "templates/rust_abi.h"

namespace hearth {
namespace {

const unsigned char* Data(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string Take(HearthBytes bytes) {
  std::string text(reinterpret_cast<const char*>(bytes.data), bytes.size);
  hearth_bytes_free(bytes);
  return text;
}

}  // namespace

void TemplateProgram::Free::operator()(HearthTemplate* program) const {
  hearth_template_free(program);
}

Result<TemplateProgram> TemplateProgram::Compile(std::string_view source,
                                                 const TemplateLimits& limits) {
  if (source.size() > limits.source_bytes) {
    return Error(Code::kExhausted, "%zu bytes; the limit is %zu", source.size(),
                 limits.source_bytes);
  }
  HearthBytes error = {};
  HearthTemplate* program = hearth_template_new(Data(source), source.size(), &error);
  if (program == nullptr) {
    return Error(Code::kInvalid, "%s", Take(error).c_str());
  }
  return TemplateProgram(program, limits);
}

Result<std::string> TemplateProgram::Run(std::string_view context,
                                         std::optional<int64_t> now) const {
  const uint64_t size = context.size();
  const HearthTemplateLimits limits = {
      .fuel = limits_.fuel + limits_.fuel_per_byte * size,
      .work = limits_.work + limits_.work_per_byte * size,
      .output_bytes = limits_.output_bytes + limits_.output_per_byte * size,
      .now = now.value_or(0),
      .recursion = limits_.recursion,
      .has_now = now.has_value()};
  HearthBytes out = {};
  const HearthTemplateOutcome outcome =
      hearth_template_render(program_.get(), Data(context), context.size(), &limits, &out);
  std::string text = Take(out);
  switch (outcome) {
    case kHearthTemplateRendered:
      return text;
    case kHearthTemplateExhausted:
      return Error(Code::kExhausted, "chat template: %s", text.c_str());
    case kHearthTemplateFailed:
      break;
  }
  return Error(Code::kInvalid, "chat template: %s", text.c_str());
}

}  // namespace hearth
