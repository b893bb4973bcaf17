// SPDX-License-Identifier: Apache-2.0
#include "tiers/redis_body.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace hearth {
namespace {

constexpr std::string_view kEnd = "\r\n";
constexpr size_t kMaxLengthBytes = 24;  // of a line with a length

struct Length {
  size_t value = 0;
  size_t num_bytes = 0;  // of the line, its end included
};

// Of `$N\r\n`; none: it is not that, or not all of it is here.
std::optional<Length> LengthIn(std::string_view data) {
  if (!data.starts_with('$')) return std::nullopt;
  const size_t end = data.substr(0, kMaxLengthBytes).find(kEnd);
  if (end == std::string_view::npos) return std::nullopt;
  Length length{0, end + kEnd.size()};
  const auto [at, error] = std::from_chars(data.data() + 1, data.data() + end, length.value);
  if (error != std::errc() || at != data.data() + end) return std::nullopt;
  return length;
}

}  // namespace

size_t RedisBody::Begin(std::string_view data, size_t max_bytes) {
  const auto length = LengthIn(data);
  if (!length || length->value < kLongBytes || length->value > max_bytes) return 0;
  value_ = TakeBuffer(pool_, length->value + kEnd.size());
  if (value_.memory == nullptr) return 0;  // hiredis says that there is no memory
  num_taken_ = 0;
  is_open_ = true;
  return length->num_bytes;
}

std::span<char> RedisBody::rest() {
  return std::span(reinterpret_cast<char*>(value_.bytes.data()), value_.bytes.size())
      .subspan(num_taken_);
}

std::optional<Buffer> RedisBody::Take() {
  is_open_ = false;
  Buffer value = std::exchange(value_, {});
  const auto* text = reinterpret_cast<const char*>(value.bytes.data());
  if (!std::string_view(text, value.bytes.size()).ends_with(kEnd)) return std::nullopt;
  value.bytes = value.bytes.first(value.bytes.size() - kEnd.size());
  return value;
}

size_t RedisReplyBytes(std::string_view data) {
  if (const auto length = LengthIn(data)) {
    // Beyond what is here there is nothing to count, and nothing to overflow.
    const size_t most = data.size() - length->num_bytes;
    return length->num_bytes + std::min(most, std::min(length->value, most) + kEnd.size());
  }
  const bool is_line = !data.empty() && std::string_view("+-:").find(data[0]) != data.npos;
  const size_t end = is_line ? data.find(kEnd) : data.npos;
  return end == data.npos ? data.size() : end + kEnd.size();
}

}  // namespace hearth
