// SPDX-License-Identifier: Apache-2.0
// JSON: what the parser accepts, it must keep to its limits, and write back as a text that parses
// to the same tree.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/json.h"

namespace hearth {
namespace {

constexpr JsonLimits kLimits{.max_bytes = 1000, .max_depth = 16, .max_values = 200};

struct Shape {
  int depth = 0;  // arrays and objects inside each other
  size_t num_values = 0;
  bool finite = true;  // infinities become null in writing
};

Shape ShapeOf(const Json& value) {
  Shape shape{0, 1, true};
  const auto add = [&shape](const Json& child) {
    const Shape inner = ShapeOf(child);
    shape.depth = std::max(shape.depth, inner.depth);
    shape.num_values += inner.num_values;
    shape.finite = shape.finite && inner.finite;
  };
  if (const JsonArray* array = value.array()) {
    for (const Json& child : *array) add(child);
    ++shape.depth;
  } else if (const JsonObject* object = value.object()) {
    for (const auto& [name, child] : *object) {
      HEARTH_CHECK(value.Find(name) == &child);  // names are unique
      add(child);
    }
    ++shape.depth;
  } else if (const auto number = value.number()) {
    shape.finite = std::isfinite(*number);
  }
  return shape;
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto value = ParseJson(text, kLimits);
  if (!value.ok()) {
    HEARTH_CHECK(!value.status().message().empty());
    return 0;
  }
  HEARTH_CHECK(text.size() <= kLimits.max_bytes);
  const Shape shape = ShapeOf(*value);
  HEARTH_CHECK(shape.depth <= kLimits.max_depth && shape.num_values <= kLimits.max_values);
  HEARTH_CHECK(shape.finite);
  for (const int indent : {0, 2}) {
    auto again = ParseJson(WriteJson(*value, indent));
    HEARTH_CHECK(again.ok() && *again == *value);
  }
  return 0;
}
