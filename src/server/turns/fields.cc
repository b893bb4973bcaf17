// SPDX-License-Identifier: Apache-2.0
#include "server/turns/fields.h"

#include <algorithm>

#include "base/check.h"
#include "base/near_match.h"

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

// Asks for nothing: 1.0 is as neutral as 1.
bool IsNeutral(const Json& value, const Field& field) {
  if (value.is_null()) return true;
  if (field.neutral.empty()) return false;
  if (WriteJson(value) == field.neutral) return true;
  Result<Json> neutral = ParseJson(field.neutral);
  return neutral.ok() && value.number() && value.number() == neutral->number();
}

const Field* RowOf(std::string_view name, std::span<const Field> table) {
  const auto at = std::find_if(table.begin(), table.end(),
                               [&](const Field& field) { return field.name == name; });
  return at == table.end() ? nullptr : &*at;
}

ApiStatus CheckMember(const JsonMember& member, const Field& field) {
  const auto& [name, value] = member;
  if (value.is_null()) return {};
  if (field.use == FieldUse::kRefused || field.use == FieldUse::kForeign) {
    if (IsNeutral(value, field)) return {};
    return BadField(name, "not supported: " + std::string(field.doc), "unsupported_parameter");
  }
  if (!IsKind(value, field.kind)) {
    return BadField(name, "must be of type " + std::string(NameOf(field.kind)));
  }
  if (field.min < field.max) {
    const double measure = Measure(value, field.kind);
    const bool sized = field.kind == FieldKind::kString || field.kind == FieldKind::kArray;
    if (!(measure >= field.min && measure <= field.max)) {
      return BadField(name,
                      Printf("%s must be between %.10g and %.10g, found %.10g",
                             sized ? "its size" : "its value", field.min, field.max, measure));
    }
  }
  return {};
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

void Fields::Set(std::string_view name, float& to) const {
  if (const auto value = number(name)) to = static_cast<float>(*value);
}

void Fields::Set(std::string_view name, int& to) const {
  if (const auto value = integer(name)) to = static_cast<int>(*value);
}

ApiResult<Fields> ReadFields(const Json& body, std::span<const Field> table) {
  if (body.object() == nullptr) {
    ApiError error;
    error.message = "the body must be a JSON object";
    return error;
  }
  for (const JsonMember& member : *body.object()) {
    const Field* field = RowOf(member.first, table);
    if (field == nullptr) {
      return UnknownField(member.first.substr(0, 80), NearField(member.first, table));
    }
    HEARTH_TRY(CheckMember(member, *field));
  }
  return Fields(body, table);
}

std::string NearField(std::string_view name, std::span<const Field> table) {
  std::vector<std::string> taken;
  for (const Field& field : table) {
    const bool is_taken = field.use == FieldUse::kHonoured || field.use == FieldUse::kNoEffect;
    if (is_taken) taken.emplace_back(field.name);
  }
  return DidYouMean(name, taken);
}

std::vector<std::string> DropUnknown(Json& body, std::span<const Field> table) {
  std::vector<std::string> names;
  if (body.object() == nullptr || table.empty()) return names;  // no table, no word on fields
  for (auto& [name, value] : *body.object()) {
    const Field* field = RowOf(name, table);
    if (field == nullptr || field->members == nullptr) continue;
    for (const std::string& inner : DropUnknown(value, field->members())) {
      names.push_back(name + "." + inner);
    }
  }
  std::erase_if(*body.object(), [&](const JsonMember& member) {
    const Field* field = RowOf(member.first, table);
    const bool is_unknown =
        field == nullptr || (field->use == FieldUse::kForeign && !IsNeutral(member.second, *field));
    if (is_unknown) names.push_back(member.first);
    return is_unknown;
  });
  return names;
}

std::string NamesForHeader(std::span<const std::string> names) {
  constexpr size_t kMaxNames = 16, kMaxBytes = 64;
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i == kMaxNames) return out + Printf(", and %zu more", names.size() - kMaxNames);
    if (i > 0) out += ", ";
    for (const char c : std::string_view(names[i]).substr(0, kMaxBytes)) {
      const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
      out += is_plain ? c : '?';
    }
  }
  return out;
}

std::string FieldsAsMarkdown(std::span<const Field> table) {
  std::string out = "| field | type | range | what becomes of it |\n|---|---|---|---|\n";
  for (const Field& field : table) {
    const char* use = field.use == FieldUse::kHonoured   ? ""
                      : field.use == FieldUse::kNoEffect ? "*no effect:* "
                                                         : "**refused:** ";
    std::string range;
    if (field.min < field.max) range = Printf("%.10g to %.10g", field.min, field.max);
    out += "| `" + std::string(field.name) + "` | " + std::string(NameOf(field.kind)) + " | " +
           range + " | " + use + std::string(field.doc) + " |\n";
  }
  return out;
}

}  // namespace hearth
