// SPDX-License-Identifier: Apache-2.0
// Finds packed weights where a file has them, and checks them. For the files that implement
// PackedModel.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/byte_reader.h"
#include "cpu/packed_builder.h"
namespace hearth {

// Finds everything in a packed file. The hashes say that it is what was written; this does not
// trust who wrote it.
class PackedModel::Finder : public Builder {
 public:
  Finder(PackedModel& packed, std::span<const std::byte> weights, std::span<const std::byte> spills,
         ThreadPool& pool)
      : Builder(weights, OneNode(), {0, static_cast<int64_t>(weights.size())}),
        packed_(packed),
        spills_(spills),
        pool_(pool) {}
  Status Finish() const {
    if (spills_.remaining() == 0) return Status();
    return Error(Code::kCorrupt, "%zu bytes after the last spilled block", spills_.remaining());
  }

 protected:
  Status DoVector(const MatView& vector, const float* at) override {
    const bool finite =
        std::all_of(at, at + vector.cols, [](float value) { return std::isfinite(value); });
    return finite ? Status() : NoNumbers();
  }

  Status DoMatrix(const MatView& matrix, PackedMatrix& packed) override {
    std::atomic<bool> sound{true};
    pool_.Run(NumPanels(matrix.rows), 1, [&](Range range, int) {
      if (!CheckPanels(packed, range.begin, range.end)) sound = false;
    });
    if (!sound) return NoNumbers();
    return packed.kind == PackKind::kMxfp4 ? FindSpills(packed) : Status();
  }

 private:
  Status FindSpills(PackedMatrix& packed) {
    HEARTH_ASSIGN(const uint32_t count, spills_.U32("the number of spilled blocks"));
    HEARTH_ASSIGN(const std::span<const std::byte> bytes,
                  spills_.Bytes(uint64_t{count} * sizeof(SpilledBlock), "spilled blocks"));
    packed.spills = reinterpret_cast<const SpilledBlock*>(bytes.data());
    packed.num_spills = static_cast<int>(count);
    packed_.spans_.emplace_back(packed.spills, count);
    const int blocks = packed.cols / kQuantBlock;
    int64_t before = -1;
    for (uint32_t i = 0; i < count; ++i) {
      const SpilledBlock& spill = packed.spills[i];
      const int64_t place = int64_t{spill.row} * blocks + spill.block;
      const bool inside = spill.row >= 0 && spill.row < packed.rows && spill.block >= 0 &&
                          spill.block < blocks && std::isfinite(spill.scale);
      if (!inside || place <= before) {
        return Error(Code::kCorrupt, "spilled block %u: row %d, block %d of %d x %d", i, spill.row,
                     spill.block, packed.rows, blocks);
      }
      before = place;
    }
    return Status();
  }

  Status NoNumbers() const {
    return Error(Code::kCorrupt, "NaN or infinite packed weights before byte %lld",
                 static_cast<long long>(used()));
  }

  PackedModel& packed_;
  ByteReader spills_;
  ThreadPool& pool_;
};

}  // namespace hearth
