// SPDX-License-Identifier: Apache-2.0
// Every AVX-512 and AMX product for packed weights, side by side: weights stream from memory, two
// threads, one row of output per format and number of tokens. Shows each as a share of a plain read
// of the same bytes and in GFLOP/s; kernels_amx.cc takes from it where one hands over to the next.
//   products_bench [rounds] [tokens...]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cpu/kernel_choice.h"
#include "cpu/kernels_amx.h"
#include "cpu/matmul.h"
#include "cpu/panels.h"
#include "platform/isa.h"
#include "streaming.h"

namespace hearth {
namespace {

constexpr int kThreads = 2;
constexpr int kGrain = 12;  // panels a call, as a backend's worker takes them, or a little more

struct Path {
  const char* name;
  PackKind kind;
  MatmulKernel product;
  int fewest, most;  // tokens it is worth measuring with
};

std::vector<Path> Paths() {
  constexpr int kAny = 1 << 20;
  constexpr auto kMxfp4 = static_cast<size_t>(PackKind::kMxfp4);
  constexpr auto kQ8 = static_cast<size_t>(PackKind::kQ8);
  const KernelTable& few = KernelsOf(std::min(BestIsa(), Isa::kAvx512));
  std::vector<Path> paths = {{few.isa, PackKind::kMxfp4, few.matmul[kMxfp4], 1, 8},
                             {few.isa, PackKind::kQ8, few.matmul[kQ8], 1, 16}};
  if (BestIsa() < Isa::kAmx) return paths;
  paths.push_back({"few", PackKind::kMxfp4, AmxMatmulMxfp4Few, 1, kMostFewTokens});
  paths.push_back({"amx", PackKind::kMxfp4, AmxMatmulMxfp4, 2, kAny});
  paths.push_back({"amx", PackKind::kQ8, AmxMatmulQ8, 3, kAny});
  return paths;
}

struct Case {
  PackKind kind;
  int m, count;  // matrices that are read in a round
  int64_t panel_bytes, matrix_bytes;
};
Case CaseOf(PackKind kind, int m) {
  Case c{kind, m, 0, kind == PackKind::kMxfp4 ? Mxfp4PanelBytes(kCols) : Q8PanelBytes(kCols), 0};
  c.matrix_bytes = NumPanels(kRows) * c.panel_bytes;
  // With many tokens arithmetic is the bound: a third of the pool is plenty.
  c.count = static_cast<int>((m <= 32 ? kPoolBytes : kPoolBytes / 3) / c.matrix_bytes);
  return c;
}

// Calls run(matrix, first panel, end) for a thread's part of all matrices.
template <class Run>
void Each(const Case& c, int thread, Run&& run) {
  const int panels = NumPanels(kRows);
  const int begin = panels * thread / kThreads, end = panels * (thread + 1) / kThreads;
  for (int i = 0; i < c.count; ++i) {
    const uint8_t* matrix = Pool() + (i * 167 % c.count) * c.matrix_bytes;
    for (int p = begin; p < end; p += kGrain) run(matrix, p, std::min(p + kGrain, end));
  }
}

void Measure(PackKind kind, int m, int rounds) {
  const Case c = CaseOf(kind, m);
  ActBuffer buffer;
  const Activations& x = buffer.Shape(m, kCols);
  std::vector<float> row(kCols, 0.7f), y(static_cast<size_t>(m) * kRows);
  for (int t = 0; t < m; ++t) ScalarKernels().quantise(row.data(), x, t);
  std::vector<Path> paths;
  for (const Path& path : Paths()) {
    if (path.kind == kind && m >= path.fewest && m <= path.most) paths.push_back(path);
  }
  double read = 1e9;
  std::vector<double> best(paths.size(), 1e9);
  for (int round = 0; round < rounds; ++round) {
    read = std::min(read, Slowest(kThreads, [&](int thread) {
                      Each(c, thread, [&](const uint8_t* at, int begin, int end) {
                        Read(at + begin * c.panel_bytes, (end - begin) * c.panel_bytes);
                      });
                    }));
    for (size_t i = 0; i < paths.size(); ++i) {
      best[i] =
          std::min(best[i], Slowest(kThreads, [&](int thread) {
                     Each(c, thread, [&](const uint8_t* at, int begin, int end) {
                       const PackedMatrix w{kind, 0, kRows, kCols, at, c.panel_bytes, nullptr, 0};
                       paths[i].product({&w, &x, nullptr, y.data(), kRows}, begin, end);
                     });
                   }));
    }
  }
  const double bytes = static_cast<double>(c.count) * static_cast<double>(c.matrix_bytes);
  const double flops = 2.0 * m * kRows * static_cast<double>(kCols) * c.count;
  std::printf("%-6s m %3d  read %5.1f GB/s", kind == PackKind::kMxfp4 ? "mxfp4" : "q8", m,
              bytes / read * 1e-9);
  for (size_t i = 0; i < paths.size(); ++i) {
    std::printf("  | %s %.2f of read, %4.0f GFLOP/s", paths[i].name, read / best[i],
                flops / best[i] * 1e-9);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  using hearth::PackKind;
  if (hearth::BestIsa() < hearth::Isa::kAvx512Vnni) {
    std::printf("this processor has no AVX-512\n");
    return 0;
  }
  const int rounds = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 5;
  std::vector<int> tokens;
  for (int i = 2; i < argc; ++i) tokens.push_back(std::max(std::atoi(argv[i]), 1));
  if (tokens.empty()) tokens = {1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 512};
  for (const PackKind kind : {PackKind::kMxfp4, PackKind::kQ8}) {
    for (const int m : tokens) hearth::Measure(kind, m, rounds);
  }
  return 0;
}
