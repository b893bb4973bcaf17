// SPDX-License-Identifier: Apache-2.0
// RocksDB's blocks in memory of a pool.
#pragma once
#include <rocksdb/memory_allocator.h>

#include <cstddef>

#include "tiers/buffer_pool.h"
namespace hearth {

// Thread: any.
class ReadBuffers : public rocksdb::MemoryAllocator {
 public:
  const char* Name() const override { return "hearth.ReadBuffers"; }
  void* Allocate(size_t size) override { return pool_.Allocate(size); }
  void Deallocate(void* memory) override { pool_.Release(memory); }

 private:
  BufferPool pool_;
};

}  // namespace hearth
