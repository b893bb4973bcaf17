// SPDX-License-Identifier: Apache-2.0
// Products of many tokens: the kernel for few and the tiles of one level in turns, best thread CPU
// time, weights from memory. HEARTH_NUMERICS=fast takes the products of numerics `fast`.
//   tiles_bench [LEVEL [FORMAT|all [rounds [tokens...]]]]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cpu/kernel_choice.h"
#include "cpu/matmul_input.h"
#include "cpu/pack_format.h"
#include "cpu/panels.h"
#include "platform/isa.h"

namespace hearth {
namespace {

constexpr int kRows = 2816, kCols = 2816, kCopies = 16, kPanelsACall = 8, kRowsACall = 128;

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Format {
  const char* name;
  PackKind kind;
  DType dtype;
};
constexpr Format kFormats[] = {
    {"mxfp4", PackKind::kMxfp4, DType::kMxfp4},  {"q8_0", PackKind::kQ8, DType::kQ8_0},
    {"q4_0", PackKind::kQ4_0, DType::kQ4_0},     {"q4_1", PackKind::kQ4_1, DType::kQ4_1},
    {"q5_0", PackKind::kQ5_0, DType::kQ5_0},     {"q5_1", PackKind::kQ5_1, DType::kQ5_1},
    {"iq4_nl", PackKind::kIq4Nl, DType::kIq4Nl}, {"q2_k", PackKind::kQ2K, DType::kQ2_K},
    {"q3_k", PackKind::kQ3K, DType::kQ3_K},      {"q4_k", PackKind::kQ4K, DType::kQ4_K},
    {"q5_k", PackKind::kQ5K, DType::kQ5_K},      {"q6_k", PackKind::kQ6K, DType::kQ6_K},
    {"iq4_xs", PackKind::kIq4Xs, DType::kIq4Xs}};

// Any bytes will do for time, but for factors that are no numbers: every byte below 0x30 keeps
// float16s small, and the shifts of MXFP4 to four.
std::vector<PackedMatrix> Matrices(const Format& format, std::vector<uint8_t>& bytes) {
  const int64_t panel = FormatOf(format.kind)->panel_bytes(format.dtype, kCols);
  const int64_t size = panel * NumPanels(kRows);
  bytes.resize(static_cast<size_t>(size * kCopies + 64));
  std::mt19937 random(1);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() & 0x30);
  uint8_t* first = bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64;
  std::vector<PackedMatrix> matrices;
  for (int i = 0; i < kCopies; ++i) {
    matrices.push_back({format.kind, static_cast<uint8_t>(format.dtype), kRows, kCols,
                        first + i * size, panel, nullptr, 0});
  }
  return matrices;
}

class Run {
 public:
  Run(const Format& format, const KernelTable& table, Numerics numerics, int m)
      : m_(m), y_(static_cast<size_t>(m) * kRows) {
    const Activations& x =
        input_.Shape(m, kCols, kForms[std::max(FormFor(format.kind, numerics), 0)]);
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    std::vector<float> row(kCols);
    for (int t = 0; t < m; ++t) {
      for (float& value : row) value = normal(random);
      table.quantise(row.data(), x, t);
    }
  }
  // Useful GFLOP/s of at least 30 ms.
  double Rate(MatmulKernel kernel, const std::vector<PackedMatrix>& matrices) {
    const double begin = ThreadSeconds();
    double flops = 0, seconds = 0;
    while (seconds < 0.03) {
      const PackedMatrix& w = matrices[next_++ % matrices.size()];
      for (int t = 0; t < m_; t += kRowsACall) {
        const Activations x = input_.Part(t, std::min(kRowsACall, m_ - t));
        float* y = y_.data() + int64_t{t} * kRows;
        for (int p = 0; p < NumPanels(kRows); p += kPanelsACall) {
          kernel({&w, &x, nullptr, y, kRows}, p, std::min(p + kPanelsACall, NumPanels(kRows)));
        }
      }
      flops += 2.0 * kRows * kCols * m_;
      seconds = ThreadSeconds() - begin;
    }
    return flops / seconds * 1e-9;
  }

 private:
  int m_;
  ActBuffer input_;
  std::vector<float> y_;
  size_t next_ = 0;
};

void Measure(const Format& format, const KernelTable& table, Numerics numerics, int rounds,
             const std::vector<int>& tokens) {
  std::vector<uint8_t> bytes;
  const std::vector<PackedMatrix> matrices = Matrices(format, bytes);
  const auto kind = static_cast<size_t>(format.kind);
  const bool is_fast = numerics == Numerics::kFast;
  const MatmulKernel one = is_fast ? table.fast.matmul[kind] : table.matmul[kind];
  TileProduct tiles = is_fast ? table.fast.tiles[kind] : table.tiles[kind];
  if (tiles.kernel == nullptr) tiles.kernel = one;  // AMX has one for any number
  for (const int m : tokens) {
    Run run(format, table, numerics, m);
    double few = 0, many = 0;
    for (int round = 0; round < rounds; ++round) {
      few = std::max(few, run.Rate(one, matrices));
      many = std::max(many, run.Rate(tiles.kernel, matrices));
    }
    std::printf("%-10s %s %-7s m %3d  few %6.1f  tiles %6.1f GFLOP/s  %.2f%s\n", table.isa,
                is_fast ? "fast" : "exact", format.name, m, few, many, many / few,
                m >= tiles.fewest ? "" : "  (not used)");
    std::fflush(stdout);
  }
}

int Main(int argc, char** argv) {
  const std::string level = argc > 1 ? argv[1] : KernelsOf(std::min(BestIsa(), Isa::kAvx512)).isa;
  const std::string format = argc > 2 ? argv[2] : "all";
  const int rounds = argc > 3 ? std::max(std::atoi(argv[3]), 1) : 5;
  std::vector<int> tokens;
  for (int i = 4; i < argc; ++i) tokens.push_back(std::max(std::atoi(argv[i]), 1));
  if (tokens.empty()) tokens = {1, 8, 16, 32, 128, 512};
  const char* name = std::getenv("HEARTH_NUMERICS");
  const bool is_fast = name != nullptr && std::strcmp(name, "fast") == 0;
  const Numerics numerics = is_fast ? Numerics::kFast : Numerics::kExact;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512Vnni, Isa::kAvx512, Isa::kAmx}) {
    if (isa > BestIsa() || level != KernelsOf(isa).isa) continue;
    for (const Format& each : kFormats) {
      if (format != "all" && format != each.name) continue;
      Measure(each, KernelsOf(isa), numerics, rounds, tokens);
    }
    return 0;
  }
  std::fprintf(stderr, "this processor has no level '%s' with tiles\n", level.c_str());
  return 2;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) { return hearth::Main(argc, argv); }
