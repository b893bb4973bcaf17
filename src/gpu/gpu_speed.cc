// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_speed.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "cuda/blocks.h"
#include "cuda/flash.h"
#include "cuda/matmul.h"
#include "cuda/supers.h"
#include "gpu/products.h"
#include "gpu/step_buffers.h"

namespace hearth::cuda {
namespace {

constexpr int64_t kCopyBytes = int64_t{64} << 20;
// Any bytes are weights, halves and scales of some size; these are neither zero nor NaN.
constexpr uint8_t kPattern = 0x36;

// The best of several, as the first finds caches and clocks cold.
Result<double> Best(Device& device, int repeats, const std::function<Status()>& ask) {
  double best = 0;
  for (int i = 0; i < repeats + (repeats > 1 ? 1 : 0); ++i) {
    HEARTH_ASSIGN(const double seconds, device.Time(ask));
    if (i == 0 || seconds < best) best = seconds;
  }
  return best;
}

template <WeightKind kKind>
int64_t UnitBytes(int cols) {
  return int64_t{cols / kSuper} * SuperFormat<kKind>::kUnitBytes;
}

// As the CPU packs them (cpu/panels.h).
int64_t PanelBytes(WeightKind kind, int cols) {
  switch (kind) {
    case WeightKind::kMxfp4:
      return Mxfp4::NibblesAt(cols) + int64_t{cols / kQuantBlock} * 256;
    case WeightKind::kQ8:
      return Q8::CodesAt(cols) + int64_t{cols / kQuantBlock} * 512;
    case WeightKind::kQ4_0:
      return BlockFormat<WeightKind::kQ4_0>::PanelBytes(cols);
    case WeightKind::kQ4_1:
      return BlockFormat<WeightKind::kQ4_1>::PanelBytes(cols);
    case WeightKind::kQ5_0:
      return BlockFormat<WeightKind::kQ5_0>::PanelBytes(cols);
    case WeightKind::kQ5_1:
      return BlockFormat<WeightKind::kQ5_1>::PanelBytes(cols);
    case WeightKind::kIq4Nl:
      return BlockFormat<WeightKind::kIq4Nl>::PanelBytes(cols);
    case WeightKind::kQ2K:
      return UnitBytes<WeightKind::kQ2K>(cols);
    case WeightKind::kQ3K:
      return UnitBytes<WeightKind::kQ3K>(cols);
    case WeightKind::kQ4K:
      return UnitBytes<WeightKind::kQ4K>(cols);
    case WeightKind::kQ5K:
      return UnitBytes<WeightKind::kQ5K>(cols);
    case WeightKind::kQ6K:
      return UnitBytes<WeightKind::kQ6K>(cols);
    default:
      return UnitBytes<WeightKind::kIq4Xs>(cols);
  }
}

// Matrices of one kind and rows of activations for them.
class ProductBench {
 public:
  ProductBench(Device& device, const BenchSizes& sizes) : device_(device), sizes_(sizes) {}

  Status Prepare(WeightKind kind, int most_rows) {
    kind_ = kind;
    const int panels = sizes_.rows / kPanelRows;
    panel_bytes_ = PanelBytes(kind, sizes_.cols);
    const int64_t each = panels * panel_bytes_;
    HEARTH_ASSIGN(weights_, device_.Take(each * sizes_.matrices, "matrices"));
    HEARTH_TRY(device_.Fill(weights_.at(), kPattern, weights_.size()));
    const int64_t values = int64_t{most_rows} * sizes_.cols;
    HEARTH_ASSIGN(act_, device_.Take(6 * values, "activations"));
    HEARTH_TRY(device_.Fill(act_.at(), kPattern, act_.size()));
    HEARTH_ASSIGN(y_,
                  device_.Take(int64_t{4} * most_rows * sizes_.rows * sizes_.matrices, "results"));
    std::vector<MatmulJob> jobs(static_cast<size_t>(sizes_.matrices));
    for (size_t i = 0; i < jobs.size(); ++i) {
      const auto n = static_cast<int64_t>(i);
      jobs[i].panels = weights_.at(n * each);
      jobs[i].panel_bytes = panel_bytes_;
      jobs[i].num_panels = panels;
      jobs[i].cols = sizes_.cols;
      jobs[i].y = y_.at<float>(4 * n * most_rows * sizes_.rows);
      jobs[i].y_stride = sizes_.rows;
    }
    const auto bytes = std::as_bytes(std::span(jobs));
    HEARTH_ASSIGN(jobs_, device_.Take(static_cast<int64_t>(bytes.size()), "jobs"));
    return Upload(device_, jobs_.at(), bytes, {});
  }

  Result<BenchRow> Run(int rows, bool is_few) {
    const ProductShape shape = ShapeOf(kind_, is_few);
    ActMemory memory{};
    memory.hi = act_.at<int8_t>();
    memory.lo = act_.at<int8_t>(int64_t{rows} * sizes_.cols);
    memory.scale = act_.at<float>(int64_t{2} * rows * sizes_.cols);
    memory.strip = ReadsSupers(kind_) ? kSuper : kStrip;
    const MatmulArgs args{jobs_.at<const MatmulJob>(), memory.Of(sizes_.cols), rows, nullptr, 0, 1};
    const Grid grid{sizes_.rows / kPanelRows, sizes_.matrices,
                    (rows + shape.tile_tokens - 1) / shape.tile_tokens, shape.threads,
                    shape.shared_bytes};
    BenchRow row;
    row.what = NameOf(shape.kernel);
    row.rows = rows;
    HEARTH_ASSIGN(row.seconds, Best(device_, sizes_.repeats,
                                    [&] { return device_.Launch(shape.kernel, grid, args); }));
    const int64_t matrices = sizes_.matrices, size = int64_t{sizes_.rows} * sizes_.cols;
    row.bytes =
        matrices * (sizes_.rows / kPanelRows * panel_bytes_ + int64_t{4} * rows * sizes_.rows) +
        int64_t{2} * rows * sizes_.cols;
    row.products = 4 * matrices * size * rows;  // both halves of an activation
    return row;
  }

 private:
  Device& device_;
  const BenchSizes& sizes_;
  WeightKind kind_{};
  int64_t panel_bytes_ = 0;
  DeviceBlock weights_, act_, y_, jobs_;
};

Status BenchCopies(Device& device, const BenchSizes& sizes, const BenchTold& told) {
  const int64_t bytes = sizes.repeats > 1 ? kCopyBytes : int64_t{1} << 16;
  HEARTH_ASSIGN(const DeviceBlock there, device.Take(bytes, "copies"));
  HEARTH_ASSIGN(const PinnedBlock here, device.TakePinned(bytes, "copies"));
  std::memset(here.data(), kPattern, here.size());
  const std::pair<const char*, std::function<Status()>> copies[] = {
      {"to the device", [&] { return device.CopyIn(there.at(), here.data(), there.size()); }},
      {"from the device", [&] { return device.CopyOut(here.data(), there.at(), there.size()); }},
      {"fill", [&] { return device.Fill(there.at(), kPattern, there.size()); }},
  };
  for (const auto& [what, ask] : copies) {
    HEARTH_ASSIGN(const double seconds, Best(device, sizes.repeats, ask));
    told({what, 0, seconds, bytes, 0});
  }
  return Status();
}

// Sixteen sequences of 64 query heads over 8 KV heads of 64 dimensions.
Status BenchFlash(Device& device, const BenchSizes& sizes, const BenchTold& told) {
  constexpr int kHeads = 64, kKvHeads = 8, kDims = 64;
  const int sequences = sizes.repeats > 1 ? 16 : 1;
  const int64_t cache = int64_t{2} * sequences * kKvHeads * sizes.context * kDims;
  HEARTH_ASSIGN(const DeviceBlock kv, device.Take(2 * cache, "keys and values"));
  HEARTH_TRY(device.Fill(kv.at(), kPattern, kv.size()));
  const int64_t rows = int64_t{sequences} * kHeads;
  HEARTH_ASSIGN(const DeviceBlock q, device.Take(2 * rows * kDims, "queries"));
  HEARTH_TRY(device.Fill(q.at(), kPattern, q.size()));
  HEARTH_ASSIGN(const DeviceBlock parts, device.Take(4 * rows * (kDims + 2), "parts"));
  HEARTH_ASSIGN(const DeviceBlock lengths, device.Take(4 * sequences, "lengths"));
  const std::vector<int32_t> all(static_cast<size_t>(sequences), sizes.context);
  HEARTH_TRY(Upload(device, lengths.at(), std::as_bytes(std::span(all)), {}));
  FlashArgs args{};
  args.q = q.at<const uint16_t>();
  args.k = kv.at<const uint16_t>();
  args.v = kv.at<const uint16_t>(cache);
  args.lengths = lengths.at<const int32_t>();
  args.parts = parts.at<float>();
  args.max_positions = sizes.context;
  args.n_heads = kHeads;
  args.n_kv_heads = kKvHeads;
  args.d_head = kDims;
  args.splits = 1;
  args.split_tiles = sizes.context / kBlockTokens;
  args.scale = 0.125f;
  const Grid grid{1, kKvHeads, sequences, kFlashThreads, FlashSharedBytes(kDims)};
  HEARTH_ASSIGN(const double seconds, Best(device, sizes.repeats, [&] {
                  return device.Launch(Kernel::kFlash64, grid, args);
                }));
  told({"hearth_flash_64", sequences, seconds, 2 * cache, 4 * rows * sizes.context * kDims});
  return Status();
}

constexpr WeightKind kProductKinds[] = {
    WeightKind::kMxfp4, WeightKind::kQ8,    WeightKind::kQ4_0, WeightKind::kQ4_1, WeightKind::kQ5_0,
    WeightKind::kQ5_1,  WeightKind::kIq4Nl, WeightKind::kQ2K,  WeightKind::kQ3K,  WeightKind::kQ4K,
    WeightKind::kQ5K,   WeightKind::kQ6K,   WeightKind::kIq4Xs};

}  // namespace

Status RunGpuBench(Device& device, const BenchSizes& sizes, const BenchTold& told) {
  HEARTH_TRY(device.Enter());
  HEARTH_TRY(BenchCopies(device, sizes, told));
  for (const WeightKind kind : kProductKinds) {
    ProductBench bench(device, sizes);
    HEARTH_TRY(bench.Prepare(kind, 4 * kTileTokens));
    for (const int rows : {1, kTileTokens, 4 * kTileTokens}) {
      HEARTH_ASSIGN(const BenchRow row, bench.Run(rows, rows <= kTileTokens));
      told(row);
    }
  }
  return BenchFlash(device, sizes, told);
}

Result<Tuning> TuneGpu(Device& device, const BenchSizes& sizes,
                       const std::function<void(const TuneRow&)>& told) {
  HEARTH_TRY(device.Enter());
  Tuning tuning;
  for (const WeightKind kind : kProductKinds) {
    if (!HasTwoKernels(kind)) continue;
    ProductBench bench(device, sizes);
    HEARTH_TRY(
        bench.Prepare(kind, *std::max_element(std::begin(kTunedRows), std::end(kTunedRows))));
    bool is_few_faster = true;
    for (const int rows : kTunedRows) {
      HEARTH_ASSIGN(const BenchRow few, bench.Run(rows, true));
      HEARTH_ASSIGN(const BenchRow many, bench.Run(rows, false));
      told({kind, rows, few.seconds, many.seconds});
      is_few_faster &= few.seconds < many.seconds;
      if (is_few_faster) tuning.few_up_to[static_cast<size_t>(kind)] = rows;
    }
  }
  return tuning;
}

}  // namespace hearth::cuda
