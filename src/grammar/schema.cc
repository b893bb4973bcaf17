// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>
#include <utility>

namespace hearth {
namespace {

// Formats the engine knows. Any other is an annotation, as the standard has it, and left out.
constexpr std::array<std::string_view, 10> kFormats = {
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"};
// Real dates only: the engine's own would let the 29th of February into every year.
constexpr std::string_view kDate =
    "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-"
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|"
    "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))";
constexpr std::string_view kTime =
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?"
    "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";

// A format is a pattern too; about this many bytes of it, by what it costs.
constexpr size_t kFormatBytes = 64;

constexpr std::array<std::string_view, 8> kCounts = {
    "minLength",     "maxLength",     "minItems",    "maxItems",
    "minProperties", "maxProperties", "minContains", "maxContains"};
// Schemas by name, one schema, and lists of schemas.
constexpr std::array<std::string_view, 5> kMaps = {"properties", "patternProperties", "$defs",
                                                   "definitions", "dependentSchemas"};
constexpr std::array<std::string_view, 11> kSingles = {"additionalProperties",
                                                       "items",
                                                       "additionalItems",
                                                       "not",
                                                       "if",
                                                       "then",
                                                       "else",
                                                       "contains",
                                                       "propertyNames",
                                                       "unevaluatedItems",
                                                       "unevaluatedProperties"};
constexpr std::array<std::string_view, 5> kLists = {"anyOf", "oneOf", "allOf", "prefixItems",
                                                    "items"};

template <class List>
bool Has(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

Status Refuse(const std::string& path, const std::string& what) {
  return Error(Code::kInvalid, "%s: %s", path.empty() ? "schema" : Quoted(path).c_str(),
               what.c_str());
}

// Where in the schema, for messages. Cut: thousands of subschemas under one long name would each
// carry it.
constexpr size_t kMaxPathBytes = 256;
std::string Below(const std::string& path, std::string_view name) {
  if (path.size() >= kMaxPathBytes) return path;
  name = name.substr(0, kMaxPathBytes);
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

bool IsFalse(const Json* value) {
  return value != nullptr && value->boolean() != nullptr && !*value->boolean();
}

// Parentheses, brackets and braces inside each other, at most. A quick upper bound: what a pattern
// escapes counts as well.
int Depth(std::string_view text) {
  int depth = 0, most = 0;
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') most = std::max(most, ++depth);
    if (c == ')' || c == ']' || c == '}') depth = std::max(0, depth - 1);
  }
  return most;
}

class Preparer {
 public:
  explicit Preparer(const SchemaLimits& limits) : limits_(limits) {}

  Status Check(const Json& root) {
    HEARTH_TRY(Survey(root, "", /*is_root=*/true));
    if (has_nested_id_ && has_ref_) {
      return Error(Code::kUnsupported, "$ref beside a $id inside the schema is not supported");
    }
    return {};
  }

  Result<Json> Prepare(const Json& root) {
    HEARTH_TRY(Check(root));
    Json out = Rewrite(root);
    if (out.object() != nullptr) out.object()->push_back({"x-guidance", Options()});
    return out;
  }

 private:
  // Counts, bounds and types: everything that can be wrong. Depth is bounded by the parser.
  Status Survey(const Json& schema, const std::string& path, bool is_root) {
    if (++num_schemas_ > limits_.schemas) {
      return Error(Code::kInvalid, "the schema has more than %zu subschemas", limits_.schemas);
    }
    if (schema.boolean() != nullptr) return {};
    if (schema.object() == nullptr) return Refuse(path, "expected an object or a boolean");
    for (const auto& [key, value] : *schema.object()) {
      HEARTH_TRY(SurveyKeyword(key, value, Below(path, key), is_root));
    }
    NoteObject(schema);
    HEARTH_TRY(SurveyRequired(schema, path));
    const bool combines = schema.Find("allOf") != nullptr ||
                          (schema.Find("anyOf") != nullptr && schema.Find("oneOf") != nullptr);
    if (combines && Alternatives(schema) > limits_.combinations) {
      return Refuse(path, "allOf combines too many alternatives");
    }
    return {};
  }

  Status SurveyKeyword(const std::string& key, const Json& value, const std::string& path,
                       bool is_root) {
    if (Has(kMaps, key)) return SurveyMap(key, value, path);
    if (Has(kLists, key) && value.array() != nullptr) {
      if (value.array()->empty() && key != "prefixItems" && key != "items") {
        return Refuse(path, "expected at least one schema");
      }
      for (size_t i = 0; i < value.array()->size(); ++i) {
        HEARTH_TRY(Survey((*value.array())[i], Below(path, std::to_string(i)), false));
      }
      return {};
    }
    if (Has(kSingles, key)) return Survey(value, path, false);
    if (Has(kLists, key)) return Refuse(path, "expected an array");
    if (key == "enum") return SurveyEnum(value, path);
    if (key == "pattern") return SurveyPattern(value, path);
    if (key == "format") return AddPatternBytes(kFormatBytes, path);
    if (Has(kCounts, key)) return SurveyCount(value, path);
    if (key == "$ref") return SurveyRef(value, path);
    if (key == "multipleOf") return SurveyMultipleOf(value, path);
    if ((key == "$id" || key == "id") && !is_root && value.string() != nullptr) {
      has_nested_id_ = true;
    }
    return {};
  }

  Status SurveyMap(const std::string& key, const Json& value, const std::string& path) {
    if (value.object() == nullptr) return Refuse(path, "expected an object");
    if (key == "properties") properties_ += value.object()->size() * value.object()->size();
    if (properties_ > limits_.properties) return Refuse(path, "too many properties");
    for (const auto& [name, schema] : *value.object()) {
      if (key == "patternProperties") {
        has_open_names_ = true;
        HEARTH_TRY(SurveyPattern(Json(name), path));
      }
      HEARTH_TRY(Survey(schema, Below(path, name), false));
    }
    return {};
  }

  Status SurveyEnum(const Json& value, const std::string& path) {
    if (value.array() == nullptr) return Refuse(path, "expected an array");
    enum_values_ += value.array()->size();
    if (enum_values_ > limits_.enum_values) {
      return Refuse(path,
                    Printf("%zu values; the limit is %zu", enum_values_, limits_.enum_values));
    }
    return {};
  }

  // The engine follows the remainder: one state for each, and for each digit before and after.
  Status SurveyMultipleOf(const Json& value, const std::string& path) const {
    double digits = value.number().value_or(0);
    if (!(digits > 0)) return Refuse(path, "expected a number above 0");
    for (int i = 0; i < 12 && digits != std::floor(digits); ++i) digits *= 10;
    while (digits >= 10 && std::fmod(digits, 10) == 0) digits /= 10;
    if (digits > limits_.multiple_of || digits != std::floor(digits)) {
      return Error(Code::kUnsupported, "%s: numbers with more digits than %.0f are not supported",
                   Quoted(path).c_str(), limits_.multiple_of);
    }
    return {};
  }

  Status SurveyPattern(const Json& value, const std::string& path) {
    if (value.string() == nullptr) return Refuse(path, "expected a string");
    Status checked = CheckPattern(*value.string(), limits_);
    if (!checked.ok()) return std::move(checked).Within(Quoted(path));
    return AddPatternBytes(value.string()->size(), path);
  }

  Status AddPatternBytes(size_t bytes, const std::string& path) {
    pattern_bytes_ += bytes;
    if (pattern_bytes_ > limits_.all_pattern_bytes) {
      return Refuse(path, Printf("all patterns together have more than %zu bytes",
                                 limits_.all_pattern_bytes));
    }
    return {};
  }

  Status SurveyCount(const Json& value, const std::string& path) {
    const auto count = value.number();
    if (!count || *count < 0 || *count != std::floor(*count)) {
      return Refuse(path, "expected a whole number of at least 0");
    }
    if (*count > static_cast<double>(limits_.count)) {
      return Refuse(path, Printf("%.0f is above the limit of %lld", *count,
                                 static_cast<long long>(limits_.count)));
    }
    counts_ += static_cast<int64_t>(*count);
    if (counts_ > limits_.all_counts) return Refuse(path, "the sum of all counts is too large");
    return {};
  }

  Status SurveyRef(const Json& value, const std::string& path) {
    has_ref_ = true;
    if (value.string() == nullptr) return Refuse(path, "expected a string");
    const std::string& ref = *value.string();
    if (ref != "#" && !ref.starts_with("#/")) {
      return Error(Code::kUnsupported,
                   "%s: expected a reference within the schema (#/...), found %s",
                   Quoted(path).c_str(), Quoted(ref).c_str());
    }
    // The engine does not decode them, and would look for another name than the standard does.
    if (ref.find_first_of("~%") != std::string::npos) {
      return Error(Code::kUnsupported, "%s: escapes in references are not supported",
                   Quoted(path).c_str());
    }
    return {};
  }

  // What decides whether objects may be closed, and how names may be written.
  void NoteObject(const Json& schema) {
    const bool names = schema.Find("properties") != nullptr || schema.Find("required") != nullptr ||
                       schema.Find("minProperties") != nullptr ||
                       schema.Find("additionalProperties") != nullptr ||
                       schema.Find("patternProperties") != nullptr;
    for (const char* word : {"anyOf", "oneOf", "$ref"}) {
      if (names && schema.Find(word) != nullptr) joins_objects_ = true;
    }
    for (const char* word : {"allOf", "if", "dependentSchemas", "not"}) {
      if (schema.Find(word) != nullptr) joins_objects_ = true;
    }
  }

  // To the engine a name that is required is a property, also where `properties` has none of it:
  // 8,000 of them took more than a minute.
  Status SurveyRequired(const Json& schema, const std::string& path) {
    const Json* required = schema.Find("required");
    if (required == nullptr || required->array() == nullptr) return {};
    const Json* properties = schema.Find("properties");
    std::unordered_set<std::string_view> names;
    if (properties != nullptr && properties->object() != nullptr) {
      for (const auto& [name, inner] : *properties->object()) names.insert(name);
    }
    const size_t before = names.size();
    for (const Json& one : *required->array()) {
      if (one.string() != nullptr) names.insert(*one.string());
    }
    properties_ += names.size() * names.size() - before * before;
    if (properties_ > limits_.properties) {
      return Refuse(Below(path, "required"), "too many properties");
    }
    return {};
  }

  // How many ways there are to choose among a schema's alternatives.
  static double Alternatives(const Json& schema) {
    double all = 1;
    for (const char* word : {"anyOf", "oneOf"}) {
      if (const Json* list = schema.Find(word); list != nullptr && list->array() != nullptr) {
        double sum = 0;
        for (const Json& one : *list->array()) sum += Alternatives(one);
        all *= std::max(1.0, sum);
      }
    }
    if (const Json* list = schema.Find("allOf"); list != nullptr && list->array() != nullptr) {
      for (const Json& one : *list->array()) all *= Alternatives(one);
    }
    return all;
  }

  // `properties` without a word on others means, to whoever writes a tool, "these".
  bool IsClosable(const Json& schema) const {
    const Json* properties = schema.Find("properties");
    if (joins_objects_ || properties == nullptr || properties->object()->empty()) return false;
    for (const char* word : {"additionalProperties", "unevaluatedProperties", "patternProperties",
                             "minProperties", "propertyNames"}) {
      if (schema.Find(word) != nullptr) return false;
    }
    const Json* required = schema.Find("required");
    if (required == nullptr || required->array() == nullptr) return true;
    std::unordered_set<std::string_view> names;
    for (const auto& [name, inner] : *properties->object()) names.insert(name);
    return std::all_of(required->array()->begin(), required->array()->end(), [&](const Json& r) {
      return r.string() != nullptr && names.contains(*r.string());
    });
  }

  Json Rewrite(const Json& schema) {
    if (schema.object() == nullptr) return schema;
    JsonObject out;
    const Json* format = schema.Find("format");
    for (const auto& [key, value] : *schema.object()) {
      if (key == "x-guidance" || key == "format") continue;  // orders to the engine; see below
      if (Has(kMaps, key)) {
        JsonObject map;
        for (const auto& [name, inner] : *value.object()) map.push_back({name, Rewrite(inner)});
        out.push_back({key, std::move(map)});
      } else if (Has(kLists, key) && value.array() != nullptr) {
        JsonArray list;
        for (const Json& inner : *value.array()) list.push_back(Rewrite(inner));
        out.push_back({key, std::move(list)});
      } else if (Has(kSingles, key)) {
        out.push_back({key, Rewrite(value)});
      } else {
        out.push_back({key, value});
      }
    }
    if (format != nullptr && format->string() != nullptr) AddFormat(*format->string(), out);
    if (IsClosable(schema)) {
      out.push_back({"additionalProperties", false});
    } else if (schema.Find("properties") != nullptr &&
               !IsFalse(schema.Find("additionalProperties"))) {
      has_open_names_ = true;
    }
    return out;
  }

  static void AddFormat(const std::string& format, JsonObject& out) {
    const bool has_pattern = std::any_of(out.begin(), out.end(),
                                         [](const JsonMember& m) { return m.first == "pattern"; });
    std::string pattern;
    if (format == "date") pattern = kDate;
    if (format == "time") pattern = kTime;
    if (format == "date-time") pattern = std::string(kDate) + "T" + std::string(kTime);
    if (!pattern.empty() && !has_pattern) {
      out.push_back({"pattern", "^(?:" + pattern + ")$"});
    } else if (Has(kFormats, format)) {
      out.push_back({"format", format});
    }
  }

  // How the engine writes JSON. Spaces are bounded: a model that can only go on with more of them
  // would. Where names are open, \u escapes are not for use: "\u0061" would be a second "a".
  Json Options() const {
    JsonObject options;
    options.push_back({"whitespace_pattern", "[ \\t]{1,2}|\\r?\\n[ \\t]{0,40}"});
    options.push_back({"json_allowed_escapes", has_open_names_ ? "nrbtf\\\"" : "nrbtf\\\"u"});
    return options;
  }

  const SchemaLimits& limits_;
  size_t num_schemas_ = 0, pattern_bytes_ = 0, enum_values_ = 0, properties_ = 0;
  int64_t counts_ = 0;
  bool has_ref_ = false, has_nested_id_ = false, joins_objects_ = false, has_open_names_ = false;
};

}  // namespace

Status CheckPattern(std::string_view pattern, const SchemaLimits& limits) {
  if (pattern.size() > limits.pattern_bytes) {
    return Error(Code::kInvalid, "the pattern has %zu bytes; the limit is %zu", pattern.size(),
                 limits.pattern_bytes);
  }
  if (Depth(pattern) > limits.pattern_depth) {
    return Error(Code::kInvalid, "the pattern is nested deeper than %d levels",
                 limits.pattern_depth);
  }
  return {};
}

Status CheckLark(std::string_view text, const SchemaLimits& limits) {
  if (text.size() > limits.lark_bytes) {
    return Error(Code::kInvalid, "the grammar has %zu bytes; the limit is %zu", text.size(),
                 limits.lark_bytes);
  }
  if (Depth(text) > limits.depth) {
    return Error(Code::kInvalid, "the grammar is nested deeper than %d levels", limits.depth);
  }
  return {};
}

Status CheckSchema(const Json& schema, const SchemaLimits& limits) {
  return Preparer(limits).Check(schema);
}

Result<std::string> PrepareSchema(const Json& schema, const SchemaLimits& limits) {
  HEARTH_ASSIGN(const Json prepared, Preparer(limits).Prepare(schema));
  return WriteJson(prepared);
}

Result<std::string> PrepareSchemaText(std::string_view text, const SchemaLimits& limits) {
  HEARTH_ASSIGN(const Json schema, ParseJson(text, {.max_bytes = limits.bytes,
                                                    .max_depth = limits.depth,
                                                    .max_values = limits.values}));
  return PrepareSchema(schema, limits);
}

}  // namespace hearth
