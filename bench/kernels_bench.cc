// SPDX-License-Identifier: Apache-2.0
// Kernels against what the machine can do at best: products with few tokens against a plain read of
// the same weights in the same run, interleaved. Times are processor time of the slowest thread,
// best of all passes, so that a neighbour on the machine disturbs both sides alike.
#include <string>

#include "cpu/kernel_choice.h"
#include "cpu/matmul.h"
#include "cpu/pack_format.h"
#include "cpu/panels.h"
#include "platform/isa.h"
#include "streaming.h"

namespace hearth {
namespace {

// Each thread takes its share of the panels of every matrix, as the backend does.
void Weights(benchmark::State& state, Isa isa, PackKind kind, int m, int num_threads) {
  const KernelTable& table = KernelsOf(isa);
  const int64_t panel_bytes = FormatOf(kind)->panel_bytes(DType::kF32, kCols);
  const int panels = NumPanels(kRows);
  const int64_t matrix_bytes = panels * panel_bytes;
  const auto count = static_cast<int>(kPoolBytes / matrix_bytes);
  ActBuffer buffer;
  const Activations& x = buffer.Shape(m, kCols);
  std::vector<float> row(kCols, 0.7f), y(static_cast<size_t>(m) * kRows);
  for (int t = 0; t < m; ++t) ScalarKernels().quantise(row.data(), x, t);
  const std::vector<float> floats(static_cast<size_t>(m) * kCols, 0.7f);
  const auto each = [&](int thread, const std::function<void(const uint8_t*, int, int)>& run) {
    const int begin = panels * thread / num_threads, end = panels * (thread + 1) / num_threads;
    for (int i = 0; i < count; ++i) run(Pool() + (i * 167 % count) * matrix_bytes, begin, end);
  };
  double best_read = 1e9, best = 1e9;
  for ([[maybe_unused]] auto _ : state) {
    best_read = std::min(best_read, Slowest(num_threads, [&](int thread) {
                           each(thread, [&](const uint8_t* at, int begin, int end) {
                             Read(at + begin * panel_bytes, (end - begin) * panel_bytes);
                           });
                         }));
    best =
        std::min(best, Slowest(num_threads, [&](int thread) {
                   each(thread, [&](const uint8_t* at, int begin, int end) {
                     const PackedMatrix w{kind, 0, kRows, kCols, at, panel_bytes, nullptr, 0};
                     const MatmulArgs args{&w, &x, nullptr, y.data(), kRows, floats.data(), kCols};
                     table.matmul[static_cast<size_t>(kind)](args, begin, end);
                   });
                 }));
  }
  const double bytes = static_cast<double>(count) * static_cast<double>(matrix_bytes);
  state.counters["GB/s"] = bytes / best * 1e-9;
  state.counters["read GB/s"] = bytes / best_read * 1e-9;
  state.counters["ratio"] = best_read / best;
  state.counters["GFLOP/s"] = 2e-9 * m * kRows * static_cast<double>(kCols) * count / best;
}

constexpr PackKind kKinds[] = {PackKind::kMxfp4, PackKind::kQ8,   PackKind::kQ4_0,  PackKind::kQ4_1,
                               PackKind::kQ5_0,  PackKind::kQ5_1, PackKind::kIq4Nl, PackKind::kQ4K,
                               PackKind::kQ6K,   PackKind::kF16,  PackKind::kBf16};

void RegisterWeights() {
  for (const Isa isa : SupportedIsas()) {
    if (isa == Isa::kScalar) continue;
    for (const PackKind kind : kKinds) {
      for (const int m : {1, 2, 4, 8, 16, 64, 512}) {
        for (const int threads : {1, 2}) {
          const std::string name = std::string(FormatOf(kind)->name) + "/" + NameOf(isa) +
                                   "/m:" + std::to_string(m) +
                                   "/threads:" + std::to_string(threads);
          benchmark::RegisterBenchmark(
              name.c_str(), [=](benchmark::State& state) { Weights(state, isa, kind, m, threads); })
              ->Iterations(5)
              ->Unit(benchmark::kMillisecond);
        }
      }
    }
  }
}

// Processor time per call of what runs per token.
void PerToken(benchmark::State& state, Isa isa, int which) {
  const KernelTable& table = KernelsOf(isa);
  std::vector<float> x(kCols, 0.7f), gain(kCols, 1.1f), y(kCols);
  ActBuffer buffer;
  const Activations& act = buffer.Shape(1, kCols);
  for ([[maybe_unused]] auto _ : state) {
    switch (which) {
      case 0:
        table.quantise(x.data(), act, 0);
        break;
      case 1:
        table.rms_norm(x.data(), gain.data(), 1e-5f, kCols, y.data());
        break;
      case 2:
        table.glu(x.data(), gain.data(), 1.702f, 7.0f, kCols, y.data());
        break;
      default:
        table.dot_rows(x.data(), gain.data(), kCols, kCols, 1, y.data());
    }
    benchmark::ClobberMemory();
  }
}

// One KV head of gpt-oss's shape for one token, over keys and values that come from memory.
void AttendOne(benchmark::State& state, Isa isa, int context, int tokens) {
  constexpr int kHead = 64, kGroup = 8;
  const int64_t block_bytes = KvHeadBytes(kHead);
  const int blocks = (context + tokens + 15) / 16;
  const auto places = static_cast<int>(kPoolBytes / block_bytes / blocks);
  std::vector<int32_t> ids(static_cast<size_t>(blocks));
  std::vector<float> q(kGroup * kHead * static_cast<size_t>(tokens), 0.01f), out(q.size());
  std::vector<float> scratch(kAttendScratch), sinks(kGroup, 0.5f);
  AttendArgs args{};
  args.q = q.data();
  args.out = out.data();
  args.pool = Pool();
  args.table = ids.data();
  args.sinks = sinks.data();
  args.scratch = scratch.data();
  args.q_stride = kGroup * kHead;
  args.block_bytes = block_bytes;
  args.count = tokens;
  args.first_position = context;
  args.n_heads = kGroup;
  args.n_kv_heads = 1;
  args.d_head = kHead;
  args.scale = 0.125f;
  int place = 0;
  for ([[maybe_unused]] auto _ : state) {
    for (int b = 0; b < blocks; ++b) {
      ids[static_cast<size_t>(b)] = place * blocks + b * 7 % blocks;
    }
    place = (place + 1) % places;
    KernelsOf(isa).attend(args, 0, 1);
  }
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(blocks * block_bytes) * 1e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
  state.counters["GFLOP/s"] = benchmark::Counter(4e-9 * context * kHead * kGroup * tokens,
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

void RegisterRest() {
  constexpr const char* kNames[] = {"quantise", "rms_norm", "glu", "dot_rows"};
  for (const Isa isa : SupportedIsas()) {
    for (int which = 0; which < 4; ++which) {
      const std::string name = std::string(kNames[which]) + "/" + NameOf(isa);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [=](benchmark::State& state) { PerToken(state, isa, which); });
    }
    if (isa == Isa::kScalar) continue;
    for (const int tokens : {1, 16}) {
      const std::string name =
          std::string("attend/") + NameOf(isa) + "/context:8192/tokens:" + std::to_string(tokens);
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
        AttendOne(state, isa, 8192, tokens);
      })->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  hearth::RegisterWeights();
  hearth::RegisterRest();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
