// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <unordered_set>

namespace hearth {
namespace {

namespace bj = boost::json;

// Receives Boost's parse events and builds our tree, counting values as they appear.
class TreeBuilder {
 public:
  explicit TreeBuilder(const JsonLimits& limits) : limits_(limits) {}

  static constexpr size_t max_object_size = static_cast<size_t>(-1);
  static constexpr size_t max_array_size = static_cast<size_t>(-1);
  static constexpr size_t max_key_size = static_cast<size_t>(-1);
  static constexpr size_t max_string_size = static_cast<size_t>(-1);

  bool on_document_begin(bj::error_code&) { return true; }
  bool on_document_end(bj::error_code&) { return true; }
  bool on_object_begin(bj::error_code& ec) { return Open(JsonObject(), ec); }
  bool on_object_end(size_t, bj::error_code& ec) { return CloseObject(ec); }
  bool on_array_begin(bj::error_code& ec) { return Open(JsonArray(), ec); }
  bool on_array_end(size_t, bj::error_code& ec) { return Close(ec); }
  bool on_key_part(bj::string_view part, size_t, bj::error_code&) { return Append(part); }
  bool on_key(bj::string_view part, size_t, bj::error_code&) {
    Append(part);
    open_.back().keys.push_back(std::exchange(text_, {}));
    return true;
  }
  bool on_string_part(bj::string_view part, size_t, bj::error_code&) { return Append(part); }
  bool on_string(bj::string_view part, size_t, bj::error_code& ec) {
    Append(part);
    return Add(Json(std::exchange(text_, {})), ec);
  }
  bool on_number_part(bj::string_view part, bj::error_code&) { return Append(part); }
  bool on_int64(int64_t value, bj::string_view, bj::error_code& ec) {
    text_.clear();
    return Add(Json(value), ec);
  }
  bool on_uint64(uint64_t value, bj::string_view, bj::error_code& ec) {
    text_.clear();
    return Add(Json(value), ec);
  }
  bool on_double(double approximate, bj::string_view part, bj::error_code& ec) {
    Append(part);
    // Boost 1.81 may be off by one unit in the last place; from_chars rounds correctly.
    double value = approximate;
    std::from_chars(text_.data(), text_.data() + text_.size(), value);
    text_.clear();
    return Add(Json(value), ec);
  }
  bool on_bool(bool value, bj::error_code& ec) { return Add(Json(value), ec); }
  bool on_null(bj::error_code& ec) { return Add(Json(), ec); }
  bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
  bool on_comment(bj::string_view, bj::error_code&) { return true; }

  const std::string& refusal() const { return refusal_; }
  Json Take() && { return std::move(root_); }

 private:
  struct Container {
    Json value;                     // an array or an object without its last key
    std::vector<std::string> keys;  // of an object; one more than members while a value is open
  };

  bool Append(bj::string_view part) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool Refuse(std::string why, bj::error_code& ec) {
    refusal_ = std::move(why);
    ec = bj::error::exception;  // any error stops Boost; the caller reads refusal()
    return false;
  }
  bool Count(bj::error_code& ec) {
    if (++num_values_ <= limits_.max_values) return true;
    return Refuse(Printf("more than %zu values", limits_.max_values), ec);
  }
  bool Open(Json container, bj::error_code& ec) {
    if (!Count(ec)) return false;
    open_.push_back({std::move(container), {}});
    return true;
  }
  bool Add(Json value, bj::error_code& ec) { return Count(ec) && Place(std::move(value)); }
  bool Place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Container& top = open_.back(); JsonArray* array = top.value.array()) {
      array->push_back(std::move(value));
    } else {
      top.value.object()->emplace_back(top.keys[top.value.object()->size()], std::move(value));
    }
    return true;
  }
  bool Close(bj::error_code&) {
    Json done = std::move(open_.back().value);
    open_.pop_back();
    return Place(std::move(done));
  }
  bool CloseObject(bj::error_code& ec) {
    std::unordered_set<std::string_view> seen;
    for (const std::string& key : open_.back().keys) {
      if (!seen.insert(key).second) {
        return Refuse("the name " + Quoted(key) + " stands twice in one object", ec);
      }
    }
    return Close(ec);
  }

  const JsonLimits limits_;
  Json root_;
  std::vector<Container> open_;
  std::string text_;  // of the key, string or number under way
  std::string refusal_;
  size_t num_values_ = 0;
};

bool IsDigitsOrSign(char c) { return (c >= '0' && c <= '9') || c == '-'; }

void WriteString(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += Printf("\\u%04x", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

template <class T>
void WriteNumber(T value, std::string& out) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  const std::string_view text(digits, static_cast<size_t>(end - digits));
  out += text;
  if (std::is_same_v<T, double> && std::all_of(text.begin(), text.end(), IsDigitsOrSign)) {
    out += ".0";
  }
}

void WriteScalar(const Json& value, std::string& out) {
  if (const bool* flag = value.boolean()) {
    out += *flag ? "true" : "false";
  } else if (const auto integer = value.integer()) {
    WriteNumber(*integer, out);
  } else if (const auto large = value.unsigned_integer()) {
    WriteNumber(*large, out);
  } else if (const auto number = value.number(); number && std::isfinite(*number)) {
    WriteNumber(*number, out);
  } else if (const std::string* text = value.string()) {
    WriteString(*text, out);
  } else {
    out += "null";
  }
}

void NewLine(int indent, int depth, std::string& out) {
  if (indent <= 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent) * static_cast<size_t>(depth), ' ');
}

// Recursion is bounded by the depth of a tree we built ourselves or parsed under max_depth.
// NOLINTNEXTLINE(misc-no-recursion)
void WriteValue(const Json& value, int indent, int depth, std::string& out) {
  const JsonArray* array = value.array();
  const JsonObject* object = value.object();
  if (array == nullptr && object == nullptr) return WriteScalar(value, out);
  const size_t size = array != nullptr ? array->size() : object->size();
  out += array != nullptr ? '[' : '{';
  for (size_t i = 0; i < size; ++i) {
    if (i > 0) out += ',';
    NewLine(indent, depth + 1, out);
    if (object != nullptr) {
      WriteString((*object)[i].first, out);
      out += indent > 0 ? ": " : ":";
    }
    WriteValue(array != nullptr ? (*array)[i] : (*object)[i].second, indent, depth + 1, out);
  }
  if (size > 0) NewLine(indent, depth, out);
  out += array != nullptr ? ']' : '}';
}

}  // namespace

Json::Json(uint64_t value) {
  if (value <= static_cast<uint64_t>(INT64_MAX)) {
    v_ = static_cast<int64_t>(value);
  } else {
    v_ = value;
  }
}

std::optional<int64_t> Json::integer() const {
  if (const int64_t* value = std::get_if<int64_t>(&v_)) return *value;
  return std::nullopt;
}

std::optional<uint64_t> Json::unsigned_integer() const {
  if (const uint64_t* value = std::get_if<uint64_t>(&v_)) return *value;
  if (const int64_t* value = std::get_if<int64_t>(&v_); value != nullptr && *value >= 0) {
    return static_cast<uint64_t>(*value);
  }
  return std::nullopt;
}

std::optional<double> Json::number() const {
  if (const double* value = std::get_if<double>(&v_)) return *value;
  if (const int64_t* value = std::get_if<int64_t>(&v_)) return static_cast<double>(*value);
  if (const uint64_t* value = std::get_if<uint64_t>(&v_)) return static_cast<double>(*value);
  return std::nullopt;
}

const Json* Json::Find(std::string_view name) const {
  const JsonObject* members = object();
  if (members == nullptr) return nullptr;
  for (const JsonMember& member : *members) {
    if (member.first == name) return &member.second;
  }
  return nullptr;
}

Result<Json> ParseJson(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return Error(Code::kInvalid, "JSON of %zu bytes, the limit is %zu", text.size(),
                 limits.max_bytes);
  }
  bj::parse_options options;
  options.max_depth = static_cast<size_t>(limits.max_depth);
  bj::basic_parser<TreeBuilder> parser(options, limits);
  bj::error_code ec;
  const size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (!ec && used == text.size()) return std::move(parser.handler()).Take();
  if (!parser.handler().refusal().empty()) {
    return Error(Code::kInvalid, "JSON near byte %zu: %s", used,
                 parser.handler().refusal().c_str());
  }
  const std::string why = ec ? ec.message() : "something follows the value";
  return Error(Code::kInvalid, "JSON near byte %zu: %s", used, why.c_str());
}

std::string WriteJson(const Json& value, int indent) {
  std::string out;
  WriteValue(value, indent, 0, out);
  return out;
}

}  // namespace hearth
