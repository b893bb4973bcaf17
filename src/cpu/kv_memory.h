// SPDX-License-Identifier: Apache-2.0
// The bytes behind KV blocks: where each layer's keys and values lie inside a block, and writing
// them. Who holds which block is the scheduler's business.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "kv/layout.h"
#include "model/model.h"
#include "platform/memory.h"
#include "platform/thread_pool.h"
namespace hearth {

// Thread: the backend's; workers write different tokens at the same time.
class KvMemory {
 public:
  // Allocates the blocks of KvLayoutOf(spec, blocks, code).
  static Result<KvMemory> Make(const ModelSpec& spec, std::span<const int> blocks,
                               KvCode code = KvCode::kInt16);

  // Before it is used: pages come from these memory nodes in turn, because every node's workers
  // read every block. Nothing for fewer than two.
  void Interleave(std::span<const int> nodes);

  // Takes all of it from the system now, and not block by block when they are first written.
  Status Reserve(ThreadPool& pool);

  struct Layer {
    int group = 0;
    int64_t offset = 0;  // inside a block of the group
    int window = 0;
  };
  const Layer& layer(int index) const { return layers_[static_cast<size_t>(index)]; }
  const KvLayout& layout() const { return layout_; }
  uint8_t* pool(int group) { return pools_[static_cast<size_t>(group)]; }
  // The bytes of one block; the id must exist.
  std::span<std::byte> block(int group, int id);
  // Stores one token's k and v, [n_kv_heads, d_head] each, at `position` of a block.
  void Write(int layer, int block, int position, const float* k, const float* v);
  // Of some heads only; k and v are those of head 0. Different heads may be written at once.
  struct Heads {
    int begin, end;
  };
  void Write(int layer, int block, int position, Heads heads, const float* k, const float* v);

 private:
  KvMemory(int n_kv_heads, int d_head) : n_kv_heads_(n_kv_heads), d_head_(d_head) {}
  template <class Number>
  void WriteAs(int layer, int block, int position, Heads heads, const float* k, const float* v);
  int n_kv_heads_, d_head_;
  KvLayout layout_;
  std::vector<Layer> layers_;
  std::vector<LargeBuffer> buffers_;  // of groups with blocks
  std::vector<uint8_t*> pools_;       // by group, null without blocks
};

// The groups of a model's layers. `blocks` says how many blocks each group gets; a single number is
// for every group, none means no blocks.
KvLayout KvLayoutOf(const ModelSpec& spec, std::span<const int> blocks,
                    KvCode code = KvCode::kInt16);
// Where each layer of the model lies in the blocks of its group.
std::vector<KvMemory::Layer> KvLayersOf(const ModelSpec& spec, const KvLayout& layout);

}  // namespace hearth
