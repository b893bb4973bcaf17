// SPDX-License-Identifier: Apache-2.0
#include "cpu/packed_model.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

#include "cpu/pack.h"
#include "cpu/packed_builder.h"
#include "cpu/packed_finder.h"
#include "cpu/panels.h"
#include "model/costs.h"
#include "platform/missing.h"
#include "tensor/quant.h"

namespace hearth {
namespace {

// Calls body(part, panels, worker) until all panels of a matrix are done, those of a node by its
// own workers, whose first touch places them where no binding does.
template <class F>
void EachNodesPanels(const PackedMatrix& matrix, ThreadPool& pool, F&& body) {
  const int panels = NumPanels(matrix.rows);
  std::vector<int> ends;
  for (int k = 1; k <= pool.plan().num_nodes(); ++k) ends.push_back(pool.plan().edge(panels, k));
  const int grain = std::max(1, panels / (8 * pool.size()));
  pool.RunByNode(ends, grain, [&](Range range, int worker) {
    const auto node = std::upper_bound(ends.begin(), ends.end(), range.begin) - ends.begin();
    body(PartOn(matrix, static_cast<int>(node)), range, worker);
  });
}

}  // namespace

// Only adds up what the weights will take.
class PackedModel::Counter : public Builder {
 public:
  explicit Counter(const WorkerPlan& plan) : Builder({}, plan, Endless(plan.num_nodes())) {}
  using Builder::used_by_node;

 private:
  static Regions Endless(int nodes) {
    constexpr int64_t kEach = int64_t{1} << 50;
    Regions regions;
    for (int k = 0; k <= nodes; ++k) regions.push_back(k * kEach);
    return regions;
  }
  Status DoVector(const MatView&, const float*) override { return Status(); }
  Status DoMatrix(const MatView&, PackedMatrix&) override { return Status(); }
};

// A node's region begins on a huge page, so that no page belongs to two.
PackedModel::Regions PackedModel::RegionsFor(const Model& model, const WorkerPlan& plan) {
  Counter counter(plan);
  PackedModel nowhere(model.spec, {});
  HEARTH_CHECK(nowhere.Build(model, counter).ok());
  Regions regions = {0};
  constexpr auto kPage = static_cast<int64_t>(LargeBuffer::kAlignment);
  for (const int64_t used : counter.used_by_node()) {
    const bool is_last = regions.size() == counter.used_by_node().size();
    regions.push_back(regions.back() + (is_last ? used : (used + kPage - 1) / kPage * kPage));
  }
  return regions;
}

int64_t PackedModel::BytesFor(const Model& model) { return RegionsFor(model, OneNode()).back(); }

// Fills the arena from the checkpoint's tensors.
class PackedModel::Packer : public Builder {
 public:
  Packer(PackedModel& packed, const Model& model, ThreadPool& pool, Regions regions,
         const Progress& progress)
      : Builder(packed.weights_, pool.plan(), std::move(regions)),
        packed_(packed),
        model_(model),
        pool_(pool),
        progress_(progress) {
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
    std::vector<std::vector<SpilledBlock>> spills(static_cast<size_t>(pool_.size()));
    std::atomic<bool> plausible{true};
    EachNodesPanels(packed, pool_, [&](const PackedMatrix& part, Range range, int worker) {
      auto* dst = const_cast<uint8_t*>(part.data);
      if (!PackPanels(matrix, range.begin, range.end, dst, spills[static_cast<size_t>(worker)])) {
        plausible = false;
      }
    });
    Release(matrix);
    if (packed.kind == PackKind::kMxfp4) {
      auto all = std::make_unique<std::vector<SpilledBlock>>();
      for (const auto& part : spills) all->insert(all->end(), part.begin(), part.end());
      std::ranges::sort(*all, {}, [](const SpilledBlock& s) { return std::pair(s.row, s.block); });
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

// Copies what a packed file holds to the nodes.
class PackedModel::Copier : public Builder {
 public:
  Copier(const PackedModel& from, const PackedModel& to, ThreadPool& pool, Regions regions)
      : Builder(to.weights_, pool.plan(), std::move(regions)),
        from_(reinterpret_cast<const uint8_t*>(from.weights_.data())),
        spills_(from.spans_),
        pool_(pool) {}

 private:
  Status DoVector(const MatView& vector, const float* at) override {
    std::memcpy(const_cast<float*>(at), from_, static_cast<size_t>(VectorBytes(vector)));
    from_ += LineUp(VectorBytes(vector));
    return Status();
  }
  Status DoMatrix(const MatView& matrix, PackedMatrix& packed) override {
    EachNodesPanels(packed, pool_, [&](const PackedMatrix& part, Range panels, int) {
      const int64_t begin = panels.begin * part.panel_bytes, end = panels.end * part.panel_bytes;
      std::memcpy(const_cast<uint8_t*>(part.data) + begin, from_ + begin,
                  static_cast<size_t>(end - begin));
    });
    from_ += LineUp(PackedBytes(matrix));
    if (packed.kind == PackKind::kMxfp4) {
      packed.spills = spills_.front().data();
      packed.num_spills = static_cast<int>(spills_.front().size());
      spills_ = spills_.subspan(1);
    }
    return Status();
  }

  const uint8_t* from_;
  std::span<const std::span<const SpilledBlock>> spills_;
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
      if (w.router.present()) builder.BeginExpert(static_cast<int>(layers_.size()) - 1);
      out.gate = builder.Matrix(ffn.gate);
      out.up = builder.Matrix(ffn.up);
      out.down = builder.Matrix(ffn.down);
      out.gate_bias = builder.Vector(ffn.gate_bias);
      out.up_bias = builder.Vector(ffn.up_bias);
      out.down_bias = builder.Vector(ffn.down_bias);
      if (w.router.present()) builder.EndExpert();
    }
  }
  return std::move(builder).status();
}

Result<std::unique_ptr<PackedModel>> PackedModel::Make(const Model& model, ThreadPool& pool,
                                                       const Progress& progress,
                                                       int64_t expert_bytes) {
  if (expert_bytes > 0) return MakePaged(model, pool, progress, expert_bytes);
  const bool is_packed = model.file != nullptr && model.file->packed() != nullptr;
  return is_packed ? Adopt(model, pool, progress) : Pack(model, pool, progress);
}

// Memory for the weights, each node's region bound to it.
Result<LargeBuffer> PackedModel::MakeArena(const Regions& regions, const WorkerPlan& plan) {
  HEARTH_ASSIGN(LargeBuffer arena, LargeBuffer::Make(static_cast<size_t>(regions.back())));
  for (size_t k = 0; k < plan.memory.size(); ++k) {
    const auto begin = static_cast<size_t>(regions[k]), end = static_cast<size_t>(regions[k + 1]);
    if (!arena.Prefer(begin, end - begin, {&plan.memory[k], 1})) {
      NoteMissing(kNoMemoryNodes);
    }
  }
  return arena;
}

Result<std::unique_ptr<PackedModel>> PackedModel::Pack(const Model& model, ThreadPool& pool,
                                                       const Progress& progress) {
  const Regions regions = RegionsFor(model, pool.plan());
  HEARTH_ASSIGN(LargeBuffer arena, MakeArena(regions, pool.plan()));
  std::unique_ptr<PackedModel> packed(new PackedModel(model.spec, arena.bytes()));
  packed->arena_.emplace(std::move(arena));
  Packer packer(*packed, model, pool, regions, progress);
  HEARTH_TRY(packed->Build(model, packer));
  packed->addresses_ = std::move(packer).addresses();
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

Status PackedModel::CheckLayout(const Model& model) {
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
  return Status();
}

Result<std::unique_ptr<PackedModel>> PackedModel::Adopt(const Model& model, ThreadPool& pool,
                                                        const Progress& progress) {
  const PackedWeights& file = *model.file->packed();
  HEARTH_TRY(CheckLayout(model));
  HEARTH_TRY(CheckChunks(file, pool, progress));
  std::unique_ptr<PackedModel> packed(new PackedModel(model.spec, file.weights()));
  packed->file_ = model.file;
  Finder finder(*packed, file.weights(), file.extra(), pool);
  HEARTH_TRY(packed->Build(model, finder));
  HEARTH_TRY(finder.Finish());
  if (pool.plan().num_nodes() > 1) return Spread(model, *packed, pool);
  return packed;
}

// A mapped file's pages belong to the system's cache, which no node owns: with several nodes the
// weights are copied.
Result<std::unique_ptr<PackedModel>> PackedModel::Spread(const Model& model,
                                                         const PackedModel& mapped,
                                                         ThreadPool& pool) {
  const Regions regions = RegionsFor(model, pool.plan());
  HEARTH_ASSIGN(LargeBuffer arena, MakeArena(regions, pool.plan()));
  std::unique_ptr<PackedModel> packed(new PackedModel(model.spec, arena.bytes()));
  packed->arena_.emplace(std::move(arena));
  packed->file_ = mapped.file_;  // spilled blocks stay there
  Copier copier(mapped, *packed, pool, regions);
  HEARTH_TRY(packed->Build(model, copier));
  packed->addresses_ = std::move(copier).addresses();
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
