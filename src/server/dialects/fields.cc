// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/fields.h"

#include <algorithm>

#include "base/check.h"

namespace hearth {
namespace {

std::string_view NameOf(FieldKind kind) {
  switch (kind) {
    case FieldKind::kBoolean:
      return "boolean";
    case FieldKind::kInteger:
      return "integer";
    case FieldKind::kNumber:
      return "number";
    case FieldKind::kString:
      return "string";
    case FieldKind::kArray:
      return "array";
    case FieldKind::kObject:
      return "object";
    case FieldKind::kAny:
      break;
  }
  return "value";
}

bool IsKind(const Json& value, FieldKind kind) {
  switch (kind) {
    case FieldKind::kBoolean:
      return value.boolean() != nullptr;
    case FieldKind::kInteger:
      return value.integer().has_value();
    case FieldKind::kNumber:
      return value.number().has_value();
    case FieldKind::kString:
      return value.string() != nullptr;
    case FieldKind::kArray:
      return value.array() != nullptr;
    case FieldKind::kObject:
      return value.object() != nullptr;
    case FieldKind::kAny:
      break;
  }
  return true;
}

// What the range is about: a number itself, or how long a text or list is.
double Measure(const Json& value, FieldKind kind) {
  if (kind == FieldKind::kString) return static_cast<double>(value.string()->size());
  if (kind == FieldKind::kArray) return static_cast<double>(value.array()->size());
  return value.number().value_or(0);
}

std::optional<ApiError> CheckMember(const JsonMember& member, const Field& field) {
  const auto& [name, value] = member;
  if (value.is_null()) return std::nullopt;
  if (field.use == FieldUse::kRefused) {
    if (!field.neutral.empty() && WriteJson(value) == field.neutral) return std::nullopt;
    return BadField(name, "not supported: " + std::string(field.doc), "unsupported_parameter");
  }
  if (!IsKind(value, field.kind)) {
    return BadField(name, "must be of type " + std::string(NameOf(field.kind)));
  }
  if (field.min < field.max) {
    const double measure = Measure(value, field.kind);
    const bool sized = field.kind == FieldKind::kString || field.kind == FieldKind::kArray;
    if (!(measure >= field.min && measure <= field.max)) {
      return BadField(
          name, Printf("%s must be between %g and %g, found %g", sized ? "its size" : "its value",
                       field.min, field.max, measure));
    }
  }
  return std::nullopt;
}

}  // namespace

const Json* Fields::find(std::string_view name) const {
  // Asking for a field that the table does not have would leave it out of the documentation.
  HEARTH_CHECK(std::any_of(table_.begin(), table_.end(),
                           [&](const Field& field) { return field.name == name; }));
  const Json* value = body_->Find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool Fields::flag(std::string_view name, bool otherwise) const {
  const Json* value = find(name);
  return value == nullptr ? otherwise : *value->boolean();
}

std::optional<int64_t> Fields::integer(std::string_view name) const {
  const Json* value = find(name);
  return value == nullptr ? std::nullopt : value->integer();
}

std::optional<double> Fields::number(std::string_view name) const {
  const Json* value = find(name);
  return value == nullptr ? std::nullopt : value->number();
}

std::optional<std::string> Fields::text(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  return *value->string();
}

ApiResult<Fields> ReadFields(const Json& body, std::span<const Field> table) {
  if (body.object() == nullptr) {
    ApiError error;
    error.message = "the body must be a JSON object";
    return error;
  }
  for (const JsonMember& member : *body.object()) {
    const auto at = std::find_if(table.begin(), table.end(),
                                 [&](const Field& field) { return field.name == member.first; });
    if (at == table.end()) {
      return UnknownField(member.first.substr(0, 80));
    }
    if (auto error = CheckMember(member, *at)) return *std::move(error);
  }
  return Fields(body, table);
}

std::string FieldsAsMarkdown(std::span<const Field> table) {
  std::string out = "| field | type | range | what becomes of it |\n|---|---|---|---|\n";
  for (const Field& field : table) {
    const char* use = field.use == FieldUse::kHonoured   ? ""
                      : field.use == FieldUse::kNoEffect ? "*no effect:* "
                                                         : "**refused:** ";
    std::string range;
    if (field.min < field.max) range = Printf("%g to %g", field.min, field.max);
    out += "| `" + std::string(field.name) + "` | " + std::string(NameOf(field.kind)) + " | " +
           range + " | " + use + std::string(field.doc) + " |\n";
  }
  return out;
}

}  // namespace hearth
