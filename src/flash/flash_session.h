// SPDX-License-Identifier: Apache-2.0
// One shape of decode attention on one GPU: what a handle of the C API holds. It knows in which
// order its calls make sense.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "cuda/args.h"
#include "flash/split_plan.h"
#include "gpu/device.h"
namespace hearth::cuda {

struct FlashConfig {
  int device = 0;
  int sequences = 0, n_heads = 0, n_kv_heads = 0, d_head = 0, max_positions = 0;
  int num_blocks = 0;  // 0: contiguous
  float scale = 0;
};

// Thread: one at a time.
class FlashSession {
 public:
  static Result<std::unique_ptr<FlashSession>> Open(const FlashConfig& config,
                                                    std::span<const std::byte> image);
  ~FlashSession();

  enum class State { kReady, kLoaded, kDecoded };
  State state() const { return state_; }
  // kUnsupported: not in this state.
  Status Load(const uint16_t* q, const uint16_t* k, const uint16_t* v, const int32_t* tables,
              const int32_t* lengths);
  Status Decode();
  Status GetOutput(float* out, size_t count);
  Status Reset();
  const SplitPlan& plan() const { return plan_; }

 private:
  FlashSession(std::unique_ptr<Device> device, const FlashConfig& config)
      : device_(std::move(device)), config_(config) {}
  Status Reserve();
  Status CheckLoad(const int32_t* tables, const int32_t* lengths) const;
  Status Upload(void* to, const void* from, size_t bytes);
  size_t CacheHalves() const;
  size_t OutFloats() const;
  int TableBlocks() const { return (config_.max_positions + kBlockTokens - 1) / kBlockTokens; }
  int HeadTiles() const { return (config_.n_heads / config_.n_kv_heads + 15) / 16; }

  const std::unique_ptr<Device> device_;
  const FlashConfig config_;
  State state_ = State::kReady;
  DeviceBlock q_, k_, v_, tables_, lengths_, parts_, out_;
  PinnedBlock staging_, result_;
  SplitPlan plan_;
};

}  // namespace hearth::cuda
