// SPDX-License-Identifier: Apache-2.0
// A span as OpenTelemetry has it, and W3C's header for who it belongs to. Pure.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
namespace hearth {

using TraceId = std::array<uint64_t, 2>;  // never both 0
using SpanId = uint64_t;                  // never 0

struct TraceSpan {
  TraceId trace{};
  SpanId id = 0, parent = 0;  // parent 0: none
  std::string name;
  int64_t start_ns = 0, end_ns = 0;  // since 1970
  bool is_server = false;            // SERVER, else INTERNAL
  bool is_error = false;
  std::string message = {};  // of the error
  std::vector<std::pair<std::string, Json>> attributes = {};
};

// The header `traceparent` of W3C Trace Context.
struct TraceParentField {
  TraceId trace{};
  SpanId span = 0;
  bool is_sampled = false;
};
// None for what is no such header: the standard says to begin a new trace then.
std::optional<TraceParentField> ReadTraceParent(std::string_view header);

// Who sends: `service.name` and the like.
using ResourceAttributes = std::vector<std::pair<std::string, Json>>;
// The body of a POST to /v1/traces: OTLP's ExportTraceServiceRequest in its JSON form, in which ids
// are hexadecimal and 64-bit integers strings.
std::string OtlpBody(std::span<const TraceSpan> spans, const ResourceAttributes& resource,
                     std::string_view version);

}  // namespace hearth
