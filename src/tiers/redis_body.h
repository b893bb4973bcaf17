// SPDX-License-Identifier: Apache-2.0
// A long value of a Redis server on its way into memory of its own. hiredis would copy it twice;
// everything else it reads.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "tiers/buffer_pool.h"
namespace hearth {

// Thread: one.
class RedisBody {
 public:
  static constexpr size_t kLongBytes = 4096;  // shorter ones are not worth it

  // At the beginning of a reply: whether it is a long value of at most `max_bytes`. Says how many
  // bytes its length took, after which the value follows; 0: it is something else, or not clear
  // yet.
  size_t Begin(std::string_view data, size_t max_bytes);
  bool is_open() const { return is_open_; }
  // Where its next bytes go; Took says how many came.
  std::span<char> rest();
  void Took(size_t num_bytes) { num_taken_ += num_bytes; }
  bool is_whole() const { return is_open_ && num_taken_ == value_.bytes.size(); }
  // Of one that is whole; none: it does not end as it should.
  std::optional<Buffer> Take();

 private:
  bool is_open_ = false;
  const std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
  Buffer value_;  // and the line's end
  size_t num_taken_ = 0;
};

// How many bytes of `data`, at the beginning of a reply, that reply has; all of them when that
// cannot be told.
size_t RedisReplyBytes(std::string_view data);

}  // namespace hearth
