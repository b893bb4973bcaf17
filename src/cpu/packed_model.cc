// SPDX-License-Identifier: Apache-2.0
#include "cpu/packed_model.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "base/byte_reader.h"
#include "cpu/pack.h"
#include "cpu/panels.h"
#include "model/costs.h"
#include "tensor/quant.h"

namespace hearth {
namespace {

int64_t VectorBytes(const MatView& vector) {
  return vector.present() ? NumPanels(vector.cols) * kPanelRows * int64_t{sizeof(float)} : 0;
}

}  // namespace

// Walks the weights front to back and says where each one's packed form lies.
class PackedModel::Builder {
 public:
  explicit Builder(std::span<const std::byte> weights)
      : Builder(reinterpret_cast<const uint8_t*>(weights.data()),
                static_cast<int64_t>(weights.size())) {}
  virtual ~Builder() = default;
  // A vector of one row (norm, bias, sinks) is kept as floats; everything else is a matrix.
  const float* Vector(const MatView& vector) {
    if (!vector.present() || !status_.ok()) return nullptr;
    const auto* at = reinterpret_cast<const float*>(Take(VectorBytes(vector)));
    status_ = DoVector(vector, at);
    return at;
  }
  PackedMatrix Matrix(const MatView& matrix) {
    PackedMatrix packed{};
    if (!matrix.present() || !status_.ok()) return packed;
    packed.kind = PackKindOf(matrix);
    packed.dtype = static_cast<uint8_t>(matrix.dtype);
    packed.rows = matrix.rows;
    packed.cols = matrix.cols;
    packed.data = Take(PackedBytes(matrix));
    packed.panel_bytes = PanelBytesOf(matrix);
    status_ = DoMatrix(matrix, packed);
    return packed;
  }
  Status status() && { return std::move(status_); }

 protected:
  Builder(const uint8_t* weights, int64_t total) : weights_(weights), total_(total) {}
  int64_t used() const { return used_; }
  int64_t total() const { return total_; }

 private:
  virtual Status DoVector(const MatView& vector, const float* at) = 0;
  virtual Status DoMatrix(const MatView& matrix, PackedMatrix& packed) = 0;
  const uint8_t* Take(int64_t bytes) {
    const uint8_t* at = weights_ != nullptr ? weights_ + used_ : nullptr;
    used_ += LineUp(bytes);
    HEARTH_CHECK(used_ <= total_);
    return at;
  }
  const uint8_t* weights_;
  int64_t used_ = 0, total_;
  Status status_;
};

// Only adds up what the weights will take.
class PackedModel::Counter : public Builder {
 public:
  Counter() : Builder(nullptr, std::numeric_limits<int64_t>::max()) {}
  using Builder::used;

 private:
  Status DoVector(const MatView&, const float*) override { return Status(); }
  Status DoMatrix(const MatView&, PackedMatrix&) override { return Status(); }
};

int64_t PackedModel::BytesFor(const Model& model) {
  Counter counter;
  PackedModel nowhere(model.spec, {});
  HEARTH_CHECK(nowhere.Build(model, counter).ok());
  return counter.used();
}

// Fills the arena from the checkpoint's tensors.
class PackedModel::Packer : public Builder {
 public:
  Packer(PackedModel& packed, const Model& model, ThreadPool& pool, const Progress& progress)
      : Builder(packed.weights_), packed_(packed), model_(model), pool_(pool), progress_(progress) {
    // When the file's cached pages leave no room for the copy, the kernel makes room by dropping
    // the oldest of them, which are the ones about to be read. Better to drop those just read.
    const uint64_t room = FreeMemoryBytes();
    const auto need = static_cast<uint64_t>(total()) + kSlack;
    if (room < need) to_drop_ = static_cast<int64_t>(need - room);
  }

 private:
  static constexpr uint64_t kSlack = uint64_t{1} << 30;  // what else a start takes, and the rest

  Status DoVector(const MatView& vector, const float* at) override {
    auto* values = const_cast<float*>(at);
    DecodeRow(vector, 0, values);
    Release(vector);
    const bool plausible =
        std::all_of(values, values + vector.cols, [](float value) { return std::isfinite(value); });
    return plausible ? Status() : Doubt();
  }

  Status DoMatrix(const MatView& matrix, PackedMatrix& packed) override {
    auto* dst = const_cast<uint8_t*>(packed.data);
    std::vector<std::vector<SpilledBlock>> spills(static_cast<size_t>(pool_.size()));
    std::atomic<bool> plausible{true};
    pool_.Run(NumPanels(matrix.rows), 1, [&](Range range, int worker) {
      if (!PackPanels(matrix, range.begin, range.end, dst, spills[static_cast<size_t>(worker)])) {
        plausible = false;
      }
    });
    Release(matrix);
    if (packed.kind == PackKind::kMxfp4) {
      auto all = std::make_unique<std::vector<SpilledBlock>>();
      for (const auto& part : spills) all->insert(all->end(), part.begin(), part.end());
      packed.num_spills = static_cast<int>(all->size());
      packed.spills = all->data();
      packed_.spills_.push_back(std::move(all));
    }
    if (progress_) progress_(used(), total());
    return plausible ? Status() : Doubt();
  }

  // Something may be no number: the one who knows walks the whole file, once.
  Status Doubt() {
    if (std::exchange(checked_, true)) return Status();
    return CheckWeights(model_);
  }

  void Release(const MatView& weight) {
    const std::span<const std::byte> extent = ExtentOf(weight);
    const bool from_cache = dropped_ < to_drop_;
    dropped_ += BytesOf(weight);
    if (model_.file == nullptr) return;
    model_.file->Release(extent, from_cache);
    if (weight.scales == nullptr) return;
    const auto scales = static_cast<size_t>(weight.rows * weight.scale_row_bytes);
    model_.file->Release({weight.scales, scales}, from_cache);
  }

  PackedModel& packed_;
  const Model& model_;
  ThreadPool& pool_;
  const Progress& progress_;
  int64_t to_drop_ = 0, dropped_ = 0;
  bool checked_ = false;
};

// Finds everything in a packed file. The hashes say that it is what was written; this does not
// trust who wrote it.
class PackedModel::Finder : public Builder {
 public:
  Finder(const PackedWeights& file, ThreadPool& pool)
      : Builder(file.weights()), spills_(file.extra()), pool_(pool) {}
  Status Finish() const {
    if (spills_.remaining() == 0) return Status();
    return Error(Code::kCorrupt, "%zu bytes after the last spilled block", spills_.remaining());
  }

 private:
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

  Status FindSpills(PackedMatrix& packed) {
    HEARTH_ASSIGN(const uint32_t count, spills_.U32("the number of spilled blocks"));
    HEARTH_ASSIGN(const std::span<const std::byte> bytes,
                  spills_.Bytes(uint64_t{count} * sizeof(SpilledBlock), "spilled blocks"));
    packed.spills = reinterpret_cast<const SpilledBlock*>(bytes.data());
    packed.num_spills = static_cast<int>(count);
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

  ByteReader spills_;
  ThreadPool& pool_;
};

Status PackedModel::Build(const Model& model, Builder& builder) {
  embedding_ = builder.Matrix(model.embedding);
  final_norm_ = builder.Vector(model.final_norm);
  head_ = model.spec.tied_head ? embedding_ : builder.Matrix(model.head);
  for (const LayerWeights& w : model.layers) {
    PackedLayer& layer = layers_.emplace_back();
    layer.q = builder.Matrix(w.q);
    layer.k = builder.Matrix(w.k);
    layer.v = builder.Matrix(w.v);
    layer.out = builder.Matrix(w.attn_out);
    layer.router = builder.Matrix(w.router);
    layer.attn_norm = builder.Vector(w.attn_norm);
    layer.q_bias = builder.Vector(w.q_bias);
    layer.k_bias = builder.Vector(w.k_bias);
    layer.v_bias = builder.Vector(w.v_bias);
    layer.q_norm = builder.Vector(w.q_norm);
    layer.k_norm = builder.Vector(w.k_norm);
    layer.sinks = builder.Vector(w.sinks);
    layer.out_bias = builder.Vector(w.out_bias);
    layer.ffn_norm = builder.Vector(w.ffn_norm);
    layer.router_bias = builder.Vector(w.router_bias);
    for (const FfnWeights& ffn : w.ffn) {
      PackedFfn& out = layer.ffn.emplace_back();
      out.gate = builder.Matrix(ffn.gate);
      out.up = builder.Matrix(ffn.up);
      out.down = builder.Matrix(ffn.down);
      out.gate_bias = builder.Vector(ffn.gate_bias);
      out.up_bias = builder.Vector(ffn.up_bias);
      out.down_bias = builder.Vector(ffn.down_bias);
    }
  }
  return std::move(builder).status();
}

Result<std::unique_ptr<PackedModel>> PackedModel::Make(const Model& model, ThreadPool& pool,
                                                       const Progress& progress) {
  const bool is_packed = model.file != nullptr && model.file->packed() != nullptr;
  return is_packed ? Adopt(model, pool, progress) : Pack(model, pool, progress);
}

Result<std::unique_ptr<PackedModel>> PackedModel::Pack(const Model& model, ThreadPool& pool,
                                                       const Progress& progress) {
  HEARTH_ASSIGN(LargeBuffer arena, LargeBuffer::Make(static_cast<size_t>(BytesFor(model))));
  std::unique_ptr<PackedModel> packed(new PackedModel(model.spec, arena.bytes()));
  packed->arena_.emplace(std::move(arena));
  Packer packer(*packed, model, pool, progress);
  HEARTH_TRY(packed->Build(model, packer));
  return packed;
}

namespace {

// Reads every byte, which also brings them into memory.
Status CheckChunks(const PackedWeights& file, ThreadPool& pool,
                   const PackedModel::Progress& progress) {
  const int chunks = file.num_chunks();
  std::atomic<int> first_bad{chunks}, done{0};
  pool.RunUneven(chunks, [&](int chunk, int worker) {
    if (!file.CheckChunk(chunk).ok()) {
      int known = first_bad;
      while (chunk < known && !first_bad.compare_exchange_weak(known, chunk)) {
      }
    }
    const int so_far = ++done;
    if (worker == 0 && progress && so_far % 64 == 0) progress(so_far, chunks);
  });
  if (first_bad < chunks) return file.CheckChunk(first_bad);
  if (progress) progress(chunks, chunks);
  return Status();
}

}  // namespace

Result<std::unique_ptr<PackedModel>> PackedModel::Adopt(const Model& model, ThreadPool& pool,
                                                        const Progress& progress) {
  const PackedWeights& file = *model.file->packed();
  if (file.layout() != kPackedLayout) {
    return Error(Code::kUnsupported,
                 "the file is packed in layout %u, but this version of Hearth uses %u; run `hearth "
                 "pack` again",
                 file.layout(), kPackedLayout);
  }
  if (static_cast<int64_t>(file.weights().size()) != BytesFor(model)) {
    return Error(Code::kCorrupt, "%zu bytes of packed weights, the model needs %lld",
                 file.weights().size(), static_cast<long long>(BytesFor(model)));
  }
  HEARTH_TRY(CheckChunks(file, pool, progress));
  std::unique_ptr<PackedModel> packed(new PackedModel(model.spec, file.weights()));
  packed->file_ = model.file;
  Finder finder(file, pool);
  HEARTH_TRY(packed->Build(model, finder));
  HEARTH_TRY(finder.Finish());
  return packed;
}

std::string PackedModel::WriteSpills() const {
  std::string out;
  for (const auto& spills : spills_) {
    const auto count = static_cast<uint32_t>(spills->size());
    out.append(reinterpret_cast<const char*>(&count), sizeof count);
    out.append(reinterpret_cast<const char*>(spills->data()), count * sizeof(SpilledBlock));
  }
  return out;
}

}  // namespace hearth
