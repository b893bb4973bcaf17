// SPDX-License-Identifier: Apache-2.0
// JSON, the program's only parser of it: a bounded wrapper of Boost.JSON. The limits are checked
// while parsing, so a hostile text costs no more than its size. Boost stays inside json.cc.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
namespace hearth {

class Json;
using JsonArray = std::vector<Json>;
using JsonMember = std::pair<std::string, Json>;
// Members in the order of the text. Order matters: tool schemas are shown to the model with it.
using JsonObject = std::vector<JsonMember>;

// What is written already: one value as JSON, put into the text as it is. Long lists are kept so,
// in a tenth of the memory of their tree.
struct JsonText {
  std::string text;
  bool operator==(const JsonText&) const = default;
};

// One value, owning everything below it. Copying copies the tree.
class Json {
 public:
  Json() = default;  // null
  Json(bool value) : v_(value) {}
  Json(int64_t value) : v_(value) {}
  Json(uint64_t value);  // kept as int64 when it fits, so that equal numbers compare equal
  Json(int value) : v_(int64_t{value}) {}
  Json(double value) : v_(value) {}
  Json(std::string value) : v_(std::move(value)) {}
  Json(std::string_view value) : v_(std::string(value)) {}
  Json(const char* value) : v_(std::string(value)) {}
  Json(JsonArray value) : v_(std::move(value)) {}
  Json(JsonObject value) : v_(std::move(value)) {}
  Json(JsonText value) : v_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(v_); }
  // Each is null when the value is of another kind.
  const bool* boolean() const { return std::get_if<bool>(&v_); }
  const std::string* string() const { return std::get_if<std::string>(&v_); }
  const JsonArray* array() const { return std::get_if<JsonArray>(&v_); }
  JsonArray* array() { return std::get_if<JsonArray>(&v_); }
  const JsonObject* object() const { return std::get_if<JsonObject>(&v_); }
  JsonObject* object() { return std::get_if<JsonObject>(&v_); }
  // Parsed values are never of this kind; to all others it is a value of no kind.
  const JsonText* written() const { return std::get_if<JsonText>(&v_); }
  // Integers written without fraction or exponent. Out of int64's range: none.
  std::optional<int64_t> integer() const;
  std::optional<uint64_t> unsigned_integer() const;
  // Any number, as the nearest double.
  std::optional<double> number() const;
  // The member of that name, or null when this is no object or has none. Looks at every member:
  // for many names in one large object, walk it once instead.
  const Json* Find(std::string_view name) const;
  bool operator==(const Json&) const = default;

 private:
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, JsonArray, JsonObject,
               JsonText>
      v_;
};

struct JsonLimits {
  size_t max_bytes = size_t{16} << 20;  // of the text
  int max_depth = 64;                   // arrays and objects inside each other
  size_t max_values = size_t{1} << 20;  // of every kind, object members included
  // The text goes on to somebody else, who will judge it: names may repeat, and a number beyond
  // the range of doubles reads as the largest one.
  bool is_passed_on = false;
};

// Strict RFC 8259: no comments, no trailing commas, valid UTF-8 only, nothing after the value.
// A name twice in one object is refused: two readers would see two different texts.
// Doubles are correctly rounded; a number beyond their range is refused. Errors name the byte
// offset.
Result<Json> ParseJson(std::string_view text, const JsonLimits& limits = {});

// How large the tree of a text that WriteJson made would be, told by one walk over the text.
struct JsonMeasure {
  size_t num_values = 0;  // as ParseJson counts them, or a few more
  int depth = 0;
};
JsonMeasure MeasureJson(std::string_view text);
// Whether ParseJson surely takes such a text.
bool FitsJsonLimits(std::string_view text, const JsonLimits& limits = {});

// The shortest text that parses back to the same value. Doubles keep a ".0" so that they stay
// doubles. What JSON cannot say is replaced, so the text is always valid: NaN and infinities by
// null, bytes that are not UTF-8 by U+FFFD. `indent` > 0 pretty-prints.
std::string WriteJson(const Json& value, int indent = 0);

}  // namespace hearth
