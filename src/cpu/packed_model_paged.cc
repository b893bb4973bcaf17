// SPDX-License-Identifier: Apache-2.0
// A packed model whose experts come from its file: everything else is copied to memory, and of each
// expert it is noted where it lies and what its bytes are.
#include <algorithm>
#include <cstring>

#include "cpu/packed_finder.h"
#include "cpu/packed_model.h"
#include "platform/direct_file.h"

namespace hearth {
namespace {

constexpr auto kChunk = static_cast<int64_t>(ExpertPager::kPiece);
constexpr int kChunksAtOnce = 128;  // checked by all threads together

}  // namespace

class PackedModel::PagedCounter : public Builder {
 public:
  PagedCounter() : Builder({}, OneNode(), {0, int64_t{1} << 50}) {}
  void BeginExpert(int layer) override {
    begin_ = used();
    if (layer != layer_) ++sizes_.layers;
    layer_ = layer;
  }
  void EndExpert() override {
    ++sizes_.experts;
    sizes_.expert = std::max(sizes_.expert, used() - begin_);
    all_ += used() - begin_;
  }
  PagedSizes Finish() {
    sizes_.resident = used() - all_;
    const auto bytes = static_cast<uint64_t>(sizes_.expert);
    // Wherever in a unit it begins.
    sizes_.frame = static_cast<int64_t>(ExpertPager::FrameBytes(0, bytes) + ExpertPager::kReadUnit);
    return sizes_;
  }

 private:
  Status DoVector(const MatView&, const float*) override { return Status(); }
  Status DoMatrix(const MatView&, PackedMatrix&) override { return Status(); }
  PagedSizes sizes_;
  int64_t begin_ = 0, all_ = 0;
  int layer_ = -1;
};

PackedModel::PagedSizes PackedModel::PagedSizesOf(const Model& model) {
  PagedCounter counter;
  PackedModel nowhere(model.spec, {});
  HEARTH_CHECK(nowhere.Build(model, counter).ok());
  return counter.Finish();
}

int PackedModel::PagedSizes::frames(int64_t expert_bytes) const {
  return static_cast<int>(std::min<int64_t>(expert_bytes / std::max<int64_t>(frame, 1), experts));
}

Status PackedModel::CheckPaging(const Model& model, int64_t expert_bytes) {
  const PagedSizes sizes = PagedSizesOf(model);
  if (sizes.experts == 0) {
    return Error(Code::kUnsupported,
                 "the model has no experts; only experts can be read from disk when needed");
  }
  const PackedWeights* packed = model.file != nullptr ? model.file->packed() : nullptr;
  if (packed == nullptr || packed->path().empty()) {
    return Error(Code::kUnsupported,
                 "experts can be read from disk only from a packed file; run `hearth pack` on a "
                 "machine that holds the model, and use what it wrote");
  }
  if (sizes.frames(expert_bytes) < sizes.layers) {
    return Error(Code::kInvalid,
                 "%lld bytes for experts are too few: each of %d layers needs room for one of %lld "
                 "bytes",
                 static_cast<long long>(expert_bytes), sizes.layers,
                 static_cast<long long>(sizes.frame));
  }
  return Status();
}

// Goes through the mapped file once, front to back: checks a stretch, copies what stays in memory,
// hashes experts, and gives the pages back.
class PackedModel::PagedFinder : public Finder {
 public:
  PagedFinder(PackedModel& packed, const WeightFile& file, ThreadPool& pool,
              std::span<std::byte> resident, const Progress& progress)
      : Finder(packed, file.packed()->weights(), packed.extra_, pool),
        file_(file),
        weights_(file.packed()->weights()),
        pool_(pool),
        resident_(resident),
        progress_(progress) {}

  void BeginExpert(int layer) override {
    is_expert_ = true;
    begin_ = used();
    experts_.resize(static_cast<size_t>(layer) + 1);
  }
  void EndExpert() override {
    is_expert_ = false;
    ExpertPlace& place = experts_.back().emplace_back();
    place.offset = file_.packed()->weights_offset() + static_cast<uint64_t>(begin_);
    place.num_bytes = static_cast<uint64_t>(used() - begin_);
    for (int64_t at = begin_; at < used();) {
      const int64_t end = std::min(at / kChunk * kChunk + kChunk, used());
      const std::span<const std::byte> piece =
          weights_.subspan(static_cast<size_t>(at), static_cast<size_t>(end - at));
      place.hashes.push_back(HashOf(piece));
      at = end;
    }
    Forget();
  }
  std::vector<std::vector<ExpertPlace>> experts() && { return std::move(experts_); }
  // The chunks behind the last weight, whose bytes are the spilled blocks.
  Status CheckRest() { return CheckChunksUpTo(int64_t{file_.packed()->num_chunks()} * kChunk); }

 protected:
  const uint8_t* Take(int64_t bytes, int node) override {
    const int64_t before = used();
    from_ = Finder::Take(bytes, node);
    if (checked_.ok()) checked_ = CheckChunksUpTo(before + bytes);
    // An expert's addresses count from its first byte.
    if (is_expert_) return reinterpret_cast<const uint8_t*>(before - begin_);
    const std::byte* at = resident_.data() + taken_;
    taken_ += static_cast<size_t>(LineUp(bytes));
    HEARTH_CHECK(taken_ <= resident_.size());
    return reinterpret_cast<const uint8_t*>(at);
  }

  Status DoVector(const MatView& vector, const float* at) override {
    HEARTH_TRY(checked_);
    HEARTH_TRY(Finder::DoVector(vector, reinterpret_cast<const float*>(from_)));
    if (!is_expert_) {
      std::memcpy(const_cast<float*>(at), from_, static_cast<size_t>(VectorBytes(vector)));
    }
    return Status();
  }

  Status DoMatrix(const MatView& matrix, PackedMatrix& packed) override {
    HEARTH_TRY(checked_);
    PackedMatrix there = packed;
    there.data = from_;
    HEARTH_TRY(Finder::DoMatrix(matrix, there));
    packed.spills = there.spills;
    packed.num_spills = there.num_spills;
    if (is_expert_) return Status();
    pool_.Run(NumPanels(packed.rows), 1, [&](Range range, int) {
      const int64_t begin = range.begin * packed.panel_bytes, end = range.end * packed.panel_bytes;
      std::memcpy(const_cast<uint8_t*>(packed.data) + begin, from_ + begin,
                  static_cast<size_t>(end - begin));
    });
    Forget();
    return Status();
  }

 private:
  Status CheckChunksUpTo(int64_t end) {
    const PackedWeights& packed = *file_.packed();
    while (int64_t{chunks_} * kChunk < end && chunks_ < packed.num_chunks()) {
      const int count = std::min(kChunksAtOnce, packed.num_chunks() - chunks_);
      std::atomic<int> bad{count};
      pool_.RunUneven(count, [&](int i, int) {
        if (!packed.CheckChunk(chunks_ + i).ok()) bad = i;
      });
      if (bad < count) return packed.CheckChunk(chunks_ + bad);
      chunks_ += count;
      if (progress_) progress_(chunks_, packed.num_chunks());
    }
    return Status();
  }

  // What has been read leaves memory; it comes past the system's cache from now on.
  void Forget() {
    const auto end = static_cast<size_t>(used());
    file_.Release(weights_.subspan(forgotten_, end - forgotten_), /*from_cache=*/true);
    forgotten_ = end;
  }

  const WeightFile& file_;
  std::span<const std::byte> weights_;
  ThreadPool& pool_;
  std::span<std::byte> resident_;
  const Progress& progress_;
  std::vector<std::vector<ExpertPlace>> experts_;
  const uint8_t* from_ = nullptr;  // where the weight that was taken last is mapped
  Status checked_;
  int64_t begin_ = 0;  // of the expert
  size_t taken_ = 0, forgotten_ = 0;
  int chunks_ = 0;
  bool is_expert_ = false;
};

Result<std::unique_ptr<PackedModel>> PackedModel::MakePaged(const Model& model, ThreadPool& pool,
                                                            const Progress& progress,
                                                            int64_t expert_bytes) {
  HEARTH_TRY(CheckPaging(model, expert_bytes));
  HEARTH_TRY(CheckLayout(model));
  HEARTH_CHECK(model.file->packed()->chunk_bytes() == ExpertPager::kPiece);
  const PackedWeights& file = *model.file->packed();
  const PagedSizes sizes = PagedSizesOf(model);
  HEARTH_ASSIGN(DirectFile direct, DirectFile::Open(file.path()));
  HEARTH_ASSIGN(LargeBuffer resident, LargeBuffer::Make(static_cast<size_t>(sizes.resident)));
  const int64_t frames = sizes.frames(expert_bytes);
  HEARTH_ASSIGN(LargeBuffer memory, LargeBuffer::Make(static_cast<size_t>(frames * sizes.frame)));
  std::unique_ptr<PackedModel> packed(new PackedModel(model.spec, resident.bytes()));
  packed->extra_.assign(file.extra().begin(), file.extra().end());
  PagedFinder finder(*packed, *model.file, pool, resident.bytes(), progress);
  packed->arena_.emplace(std::move(resident));
  HEARTH_TRY(packed->Build(model, finder));
  HEARTH_TRY(finder.CheckRest());
  HEARTH_TRY(finder.Finish());
  std::vector<std::vector<ExpertPlace>> experts = std::move(finder).experts();
  experts.resize(packed->layers_.size());
  for (size_t i = 0; i < experts.size(); ++i) {
    for (size_t e = 0; e < experts[i].size(); ++e) experts[i][e].ffn = packed->layers_[i].ffn[e];
  }
  auto shared = std::make_shared<DirectFile>(std::move(direct));
  packed->pager_ = std::make_unique<ExpertPager>(
      std::move(experts), std::move(memory),
      [shared](uint64_t offset, std::span<std::byte> to, uint64_t needed) {
        return shared->ReadAt(offset, to, needed);
      });
  return packed;
}

}  // namespace hearth
