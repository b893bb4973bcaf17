// SPDX-License-Identifier: Apache-2.0
// The fields of a request as a table: what each is, its range, and what becomes of it. Parser and
// documentation are read from the same rows; a field that is in no row is refused by its name.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/turns/api_error.h"
namespace hearth {

enum class FieldKind : unsigned char {
  kBoolean,
  kInteger,
  kNumber,
  kString,
  kArray,
  kObject,
  kAny
};

enum class FieldUse : unsigned char {
  kHonoured,
  kNoEffect,  // taken and without effect by its nature here; `doc` says why
  kRefused,   // known and not done: a 400 that names it, unless it has its `neutral` value
  kForeign,   // the same, of a setting that other engines have: like a field in no row it may be
              // left out with notice (DropUnknown)
};

struct Field {
  std::string_view name;
  FieldKind kind;
  FieldUse use;
  double min = 0, max = 0;  // of numbers, when min < max; of strings and arrays, sizes
  std::string_view doc;
  std::string_view neutral = {};  // JSON text of a value that asks for nothing, for those refused
  // Of an object: the table that whoever reads it holds its members to. Null: it has none.
  std::span<const Field> (*members)() = nullptr;
};

// A body that was checked against its table. Borrows the body.
class Fields {
 public:
  Fields(const Json& body, std::span<const Field> table) : body_(&body), table_(table) {}
  // Absent and null are the same: many clients send null for "not set".
  const Json* find(std::string_view name) const;
  bool flag(std::string_view name, bool otherwise) const;
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
  // Where it is given, `to` gets it; else `to` stays.
  void Set(std::string_view name, float& to) const;
  void Set(std::string_view name, int& to) const;

 private:
  const Json* body_;
  std::span<const Field> table_;
};

// Every member is in the table, of its kind and within its range, and none is refused.
ApiResult<Fields> ReadFields(const Json& body, std::span<const Field> table);

// `; did you mean "max_tokens"?` for a name in no row that is near one that is taken; else nothing.
std::string NearField(std::string_view name, std::span<const Field> table);

// Takes out what ReadFields would refuse as unknown: members in no row, and foreign settings that
// ask for something; the same of objects whose row has a table. Their names, as the client wrote
// them ("top_a", "options.top_a"). Without a table nothing is unknown.
std::vector<std::string> DropUnknown(Json& body, std::span<const Field> table);
// Such names for a header or a log: bounded, and nothing but letters, digits and "_.-".
std::string NamesForHeader(std::span<const std::string> names);

// The table as Markdown, for docs/api.md.
std::string FieldsAsMarkdown(std::span<const Field> table);

}  // namespace hearth
