// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "base/utf8.h"

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
    open_.back().key = std::exchange(text_, {});
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
    // Boost 1.81 may be off by one unit in the last place; from_chars rounds correctly. Where that
    // finds no finite value but zero, Boost's tells the two ends of the range apart.
    double value = approximate;
    const auto parsed = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (parsed.ec == std::errc::result_out_of_range) {
      value = std::abs(approximate) > 1.0 ? HUGE_VAL : std::copysign(0.0, approximate);
    }
    if (!std::isfinite(value) && limits_.is_passed_on) {
      value = std::copysign(std::numeric_limits<double>::max(), approximate);
    }
    if (!std::isfinite(value)) return Refuse("the number " + Quoted(text_) + " is too large", ec);
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
    Json value;       // an array or an object
    std::string key;  // of an object's member whose value is still to come
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
      top.value.object()->emplace_back(std::move(top.key), std::move(value));
    }
    return true;
  }
  bool Close(bj::error_code&) {
    Json done = std::move(open_.back().value);
    open_.pop_back();
    return Place(std::move(done));
  }
  bool CloseObject(bj::error_code& ec) {
    if (limits_.is_passed_on) return Close(ec);
    // Sorting, not hashing: nobody can choose names that make it slow.
    std::vector<std::string_view> names;
    names.reserve(open_.back().value.object()->size());
    for (const JsonMember& member : *open_.back().value.object()) names.push_back(member.first);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice == names.end()) return Close(ec);
    return Refuse("the name " + Quoted(*twice) + " appears twice in one object", ec);
  }

  const JsonLimits limits_;
  Json root_;
  std::vector<Container> open_;
  std::string text_;  // of the key, string or number under way
  std::string refusal_;
  size_t num_values_ = 0;
};

bool IsDigitsOrSign(char c) { return (c >= '0' && c <= '9') || c == '-'; }

void WriteAscii(char c, std::string& out) {
  constexpr std::string_view kShort = "\"\\\n\r\t\b\f";
  constexpr std::string_view kLetter = "\"\\nrtbf";
  if (const size_t which = kShort.find(c); which != std::string_view::npos) {
    out += '\\';
    out += kLetter[which];
  } else if (static_cast<unsigned char>(c) < 0x20) {
    out += Printf("\\u%04x", static_cast<unsigned>(c));
  } else {
    out += c;
  }
}

void WriteString(std::string_view text, std::string& out) {
  out += '"';
  while (!text.empty()) {
    const int length = DecodeUtf8(text.data(), text.data() + text.size()).num_bytes;
    if (length == 0) {
      out += "\\ufffd";
    } else if (length == 1) {
      WriteAscii(text[0], out);
    } else {
      out += text.substr(0, static_cast<size_t>(length));
    }
    text.remove_prefix(static_cast<size_t>(std::max(length, 1)));
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
  } else if (const JsonText* written = value.written()) {
    out += written->text;
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

JsonMeasure MeasureJson(std::string_view text) {
  JsonMeasure out{1, 0};
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '[' || c == '{') {
      out.depth = std::max(out.depth, ++depth);
      ++out.num_values;  // its first member, if it has one
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',') {
      ++out.num_values;
    } else {
      in_string = c == '"';
    }
  }
  return out;
}

bool FitsJsonLimits(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) return false;
  const JsonMeasure measure = MeasureJson(text);
  return measure.num_values <= limits.max_values && measure.depth <= limits.max_depth;
}

std::string WriteJson(const Json& value, int indent) {
  std::string out;
  WriteValue(value, indent, 0, out);
  return out;
}

}  // namespace hearth
