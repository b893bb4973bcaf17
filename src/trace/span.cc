// SPDX-License-Identifier: Apache-2.0
#include "trace/span.h"

#include <charconv>

namespace hearth {
namespace {

constexpr int kKindInternal = 1, kKindServer = 2;  // opentelemetry.proto.trace.v1.SpanKind
constexpr int kStatusError = 2;

std::optional<uint64_t> Hex(std::string_view text) {
  uint64_t value = 0;
  for (const char c : text) {
    // Lower case only: the standard's.
    const bool is_digit = c >= '0' && c <= '9', is_letter = c >= 'a' && c <= 'f';
    if (!is_digit && !is_letter) return std::nullopt;
    value = value << 4 | static_cast<uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  return value;
}

std::string HexOf(uint64_t value) {
  return Printf("%016llx", static_cast<unsigned long long>(value));
}

Json ValueOf(const Json& value) {
  if (const bool* boolean = value.boolean()) return JsonObject{{"boolValue", *boolean}};
  if (const std::string* string = value.string()) return JsonObject{{"stringValue", *string}};
  if (const auto integer = value.integer()) {
    return JsonObject{{"intValue", std::to_string(*integer)}};
  }
  if (const JsonArray* array = value.array()) {
    JsonArray values;
    for (const Json& each : *array) values.push_back(ValueOf(each));
    return JsonObject{{"arrayValue", JsonObject{{"values", std::move(values)}}}};
  }
  return JsonObject{{"doubleValue", value.number().value_or(0)}};
}

JsonArray AttributesOf(const std::vector<std::pair<std::string, Json>>& attributes) {
  JsonArray out;
  for (const auto& [key, value] : attributes) {
    out.push_back(JsonObject{{"key", key}, {"value", ValueOf(value)}});
  }
  return out;
}

Json JsonOf(const TraceSpan& span) {
  JsonObject out{{"traceId", HexOf(span.trace[0]) + HexOf(span.trace[1])},
                 {"spanId", HexOf(span.id)}};
  if (span.parent != 0) out.emplace_back("parentSpanId", HexOf(span.parent));
  out.emplace_back("name", span.name);
  out.emplace_back("kind", span.is_server ? kKindServer : kKindInternal);
  out.emplace_back("startTimeUnixNano", std::to_string(span.start_ns));
  out.emplace_back("endTimeUnixNano", std::to_string(span.end_ns));
  out.emplace_back("attributes", AttributesOf(span.attributes));
  JsonObject status;
  if (span.is_error) {
    status = {{"code", kStatusError}, {"message", span.message}};
  }
  out.emplace_back("status", std::move(status));
  return out;
}

}  // namespace

std::optional<TraceParentField> ReadTraceParent(std::string_view header) {
  // version-trace-span-flags: 2, 32, 16 and 2 digits. Later versions may go on after that.
  if (header.size() < 55 || header[2] != '-' || header[35] != '-' || header[52] != '-') {
    return std::nullopt;
  }
  const std::optional<uint64_t> version = Hex(header.substr(0, 2));
  if (!version || *version == 0xff) return std::nullopt;
  const bool goes_on = header.size() > 55;
  if (goes_on && (*version == 0 || header[55] != '-')) return std::nullopt;
  const auto high = Hex(header.substr(3, 16)), low = Hex(header.substr(19, 16));
  const auto span = Hex(header.substr(36, 16)), flags = Hex(header.substr(53, 2));
  if (!high || !low || !span || !flags || (*high == 0 && *low == 0) || *span == 0) {
    return std::nullopt;
  }
  return TraceParentField{{*high, *low}, *span, (*flags & 1) != 0};
}

std::string OtlpBody(std::span<const TraceSpan> spans, const ResourceAttributes& resource,
                     std::string_view version) {
  JsonArray all;
  for (const TraceSpan& span : spans) all.push_back(JsonOf(span));
  JsonObject scope{{"scope", JsonObject{{"name", "hearth"}, {"version", version}}},
                   {"spans", std::move(all)}};
  JsonObject resource_spans{{"resource", JsonObject{{"attributes", AttributesOf(resource)}}},
                            {"scopeSpans", JsonArray{Json(std::move(scope))}}};
  return WriteJson(JsonObject{{"resourceSpans", JsonArray{Json(std::move(resource_spans))}}});
}

}  // namespace hearth
