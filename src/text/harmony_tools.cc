// SPDX-License-Identifier: Apache-2.0
// The layout must equal what the model saw in training, byte for byte, so oddities are kept: a
// description with several lines gets one "//", `default` is quoted in some places and not in
// others, and unknown schema words (anyOf, $ref, allOf) all mean `any`.
#include "text/harmony_tools.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <unordered_set>

namespace hearth {
namespace {

const std::string* FindString(const Json& schema, std::string_view name) {
  const Json* member = schema.Find(name);
  return member != nullptr ? member->string() : nullptr;
}
const JsonArray* FindArray(const Json& schema, std::string_view name) {
  const Json* member = schema.Find(name);
  return member != nullptr ? member->array() : nullptr;
}
bool IsEnum(const Json& schema) {
  const JsonArray* values = FindArray(schema, "enum");
  return values != nullptr && !values->empty();
}
bool IsNullable(const Json& schema) {
  const Json* nullable = schema.Find("nullable");
  return nullable != nullptr && nullable->boolean() != nullptr && *nullable->boolean();
}

// Writes one schema. `indent` counts spaces. Recursion goes as deep as the JSON is nested, which
// the JSON parser bounds (JsonLimits::max_depth).
class SchemaWriter {
 public:
  explicit SchemaWriter(std::string& out) : out_(out) {}
  void Type(const Json& schema, size_t indent);

 private:
  void Object(const Json& schema, size_t indent);
  void Property(const std::string& name, const Json& schema, bool is_required, size_t indent);
  void PropertyComments(const Json& schema, size_t indent);
  void OneOfProperty(const std::string& name, const Json& schema, bool is_required, size_t indent);
  void OneOf(const JsonArray& variants, size_t indent);
  void NamedType(const std::string& type, const Json& schema, size_t indent);
  void TypeOrNull(const Json& schema, size_t indent);
  void Comment(std::string_view text, size_t indent);
  void Default(const Json& schema, const Json& value);
  void Value(const Json& value);
  void Number(double value);

  std::string& out_;
};

void SchemaWriter::Comment(std::string_view text, size_t indent) {
  out_.append(indent, ' ').append("// ").append(text).append("\n");
}

// As the shortest digits that read back the same, in the layout the model knows: 1.0, 0.00001,
// 1e-6, 1e16. The standard library switches to exponents elsewhere.
void SchemaWriter::Number(double value) {
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(end.ptr - buffer));
  if (text.front() == '-') {
    out_ += '-';
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  int exponent = 0;
  const bool is_negative = text[e + 1] == '-';
  std::from_chars(text.data() + e + 2, text.data() + text.size(), exponent);
  if (is_negative) exponent = -exponent;
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  const int count = static_cast<int>(digits.size());
  const int point = exponent + 1;  // digits before the decimal point
  if (value == 0) {
    out_ += "0.0";
  } else if (count <= point && point <= 16) {
    out_.append(digits).append(static_cast<size_t>(point - count), '0').append(".0");
  } else if (0 < point && point <= 16) {
    out_.append(digits, 0, static_cast<size_t>(point)).append(".");
    out_.append(digits, static_cast<size_t>(point));
  } else if (-5 < point && point <= 0) {
    out_.append("0.").append(static_cast<size_t>(-point), '0').append(digits);
  } else {
    out_ += digits[0];
    if (count > 1) out_.append(".").append(digits, 1);
    out_.append("e").append(std::to_string(exponent));
  }
}

void SchemaWriter::Value(const Json& value) {
  if (const JsonArray* array = value.array()) {
    out_ += '[';
    for (size_t i = 0; i < array->size(); ++i) {
      if (i > 0) out_ += ',';
      Value((*array)[i]);
    }
    out_ += ']';
  } else if (const JsonObject* object = value.object()) {
    out_ += '{';
    for (size_t i = 0; i < object->size(); ++i) {
      if (i > 0) out_ += ',';
      out_ += WriteJson(Json((*object)[i].first));
      out_ += ':';
      Value((*object)[i].second);
    }
    out_ += '}';
  } else if (value.integer() || value.unsigned_integer() || !value.number()) {
    out_ += WriteJson(value);
  } else {
    Number(*value.number());
  }
}

void SchemaWriter::Default(const Json& schema, const Json& value) {
  out_ += "default: ";
  const std::string* text = value.string();
  if (text == nullptr) return Value(value);
  const char* quote = IsEnum(schema) ? "" : "\"";
  out_.append(quote).append(*text).append(quote);
}

void SchemaWriter::TypeOrNull(const Json& schema, size_t indent) {
  const size_t begin = out_.size();
  Type(schema, indent);
  if (IsNullable(schema) && out_.find("null", begin) == std::string::npos) out_ += " | null";
}

void SchemaWriter::OneOf(const JsonArray& variants, size_t indent) {
  for (const Json& variant : variants) {
    out_.append("\n").append(indent, ' ').append(" | ");
    TypeOrNull(variant, indent + 3);
    const std::string* description = FindString(variant, "description");
    const Json* value = variant.Find("default");
    if (description != nullptr || value != nullptr) out_ += " // ";
    if (description != nullptr) out_ += *description;
    if (description != nullptr && value != nullptr) out_ += ' ';
    if (value == nullptr) continue;
    if (value->string() != nullptr && IsEnum(variant)) {
      // Here alone the default of an enum is quoted, and escaped as in JSON.
      out_.append("default: ").append(WriteJson(*value));
    } else {
      Default(variant, *value);
    }
  }
}

void SchemaWriter::PropertyComments(const Json& schema, size_t indent) {
  if (const std::string* title = FindString(schema, "title")) {
    Comment(*title, indent);
    out_.append(indent, ' ').append("//\n");
  }
  const std::string* description = FindString(schema, "description");
  if (description != nullptr && schema.Find("oneOf") == nullptr) Comment(*description, indent);
  const JsonArray* examples = FindArray(schema, "examples");
  if (examples == nullptr || examples->empty()) return;
  Comment("Examples:", indent);
  for (const Json& example : *examples) {
    if (const std::string* text = example.string()) Comment("- \"" + *text + "\"", indent);
  }
}

void SchemaWriter::OneOfProperty(const std::string& name, const Json& schema, bool is_required,
                                 size_t indent) {
  const JsonArray& variants = *FindArray(schema, "oneOf");
  const std::string* description = FindString(schema, "description");
  const std::string* first = variants.empty() ? nullptr : FindString(variants[0], "description");
  const bool is_above = description != nullptr && (first == nullptr || *first != *description);
  if (is_above) Comment(*description, indent);
  if (const Json* value = schema.Find("default")) {
    out_.append(indent, ' ').append("// ");
    Default(schema, *value);
    out_ += '\n';
  }
  out_.append(indent, ' ').append(name).append(is_required ? ":\n" : "?:\n");
  for (size_t i = 0; i < variants.size(); ++i) {
    const Json& variant = variants[i];
    out_.append(indent, ' ').append(" | ");
    TypeOrNull(variant, indent + 3);
    const std::string* own = FindString(variant, "description");
    if (own != nullptr && description != nullptr && *own == *description) own = nullptr;
    if (i == 0 && is_above) own = nullptr;
    const Json* value = variant.Find("default");
    if (own != nullptr || value != nullptr) out_ += " // ";
    if (own != nullptr) out_ += *own;
    if (own != nullptr && value != nullptr) out_ += ' ';
    if (value != nullptr) Default(variant, *value);
    out_ += '\n';
  }
  out_.append(indent, ' ').append(",\n");
}

void SchemaWriter::Property(const std::string& name, const Json& schema, bool is_required,
                            size_t indent) {
  PropertyComments(schema, indent);
  if (FindArray(schema, "oneOf") != nullptr) {
    return OneOfProperty(name, schema, is_required, indent);
  }
  out_.append(indent, ' ').append(name).append(is_required ? ": " : "?: ");
  TypeOrNull(schema, indent + 4);
  out_ += ',';
  const Json* value = schema.Find("default");
  if (value != nullptr && schema.Find("oneOf") == nullptr) {
    out_ += " // ";
    Default(schema, *value);
  }
  out_ += '\n';
}

// A set: a hostile schema has as many names here as it has properties.
std::unordered_set<std::string_view> RequiredNames(const Json& schema) {
  std::unordered_set<std::string_view> names;
  const JsonArray* required = FindArray(schema, "required");
  for (size_t i = 0; required != nullptr && i < required->size(); ++i) {
    if (const std::string* name = (*required)[i].string()) names.insert(*name);
  }
  return names;
}

void SchemaWriter::Object(const Json& schema, size_t indent) {
  if (const std::string* description = FindString(schema, "description")) {
    Comment(*description, indent);
  }
  out_ += "{\n";
  const Json* properties = schema.Find("properties");
  if (properties != nullptr && properties->object() != nullptr) {
    const std::unordered_set<std::string_view> required = RequiredNames(schema);
    for (const auto& [name, property] : *properties->object()) {
      Property(name, property, required.contains(name), indent);
    }
  }
  out_.append(indent, ' ').append("}");
}

void SchemaWriter::NamedType(const std::string& type, const Json& schema, size_t indent) {
  if (type == "object") return Object(schema, indent);
  if (type == "array") {
    const Json* items = schema.Find("items");
    if (items == nullptr) {
      out_ += "Array<any>";
    } else {
      Type(*items, indent);
      out_ += "[]";
    }
    return;
  }
  const JsonArray* values = type == "string" ? FindArray(schema, "enum") : nullptr;
  bool has_values = false;
  for (size_t i = 0; values != nullptr && i < values->size(); ++i) {
    const std::string* text = (*values)[i].string();
    if (text == nullptr) continue;
    out_.append(has_values ? " | \"" : "\"").append(*text).append("\"");
    has_values = true;
  }
  if (has_values) return;
  if (type == "string" || type == "number" || type == "boolean") {
    out_ += type;
  } else {
    out_ += type == "integer" ? "number" : "any";
  }
}

void SchemaWriter::Type(const Json& schema, size_t indent) {
  if (const JsonArray* variants = FindArray(schema, "oneOf")) return OneOf(*variants, indent);
  if (const std::string* type = FindString(schema, "type")) {
    return NamedType(*type, schema, indent);
  }
  bool has_types = false;
  if (const JsonArray* types = FindArray(schema, "type")) {
    for (const Json& type : *types) {
      if (type.string() == nullptr) continue;
      if (has_types) out_ += " | ";
      out_ += *type.string() == "integer" ? "number" : *type.string();
      has_types = true;
    }
  }
  if (!has_types) out_ += "any";
}

// Each line after "// ". A line's end is "\n" or "\r\n"; none is owed at the end of the text.
void CommentLines(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (end != std::string_view::npos && line.ends_with('\r')) line.remove_suffix(1);
    out.append("// ").append(line).append("\n");
  }
}

}  // namespace

std::string HarmonyToolsSection(const std::vector<ToolDefinition>& tools) {
  std::string out = "# Tools\n\n## functions\n\nnamespace functions {\n\n";
  for (const ToolDefinition& tool : tools) {
    CommentLines(tool.description, out);
    out.append("type ").append(tool.name).append(" = (");
    if (!tool.parameters.is_null()) {
      out += "_: ";
      SchemaWriter(out).Type(tool.parameters, 0);
    }
    out += ") => any;\n\n";
  }
  out += "} // namespace functions";
  return out;
}

}  // namespace hearth
