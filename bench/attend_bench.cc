// SPDX-License-Identifier: Apache-2.0
// Attention of gpt-oss's shape (64 heads, 8 KV heads of 64) over int16 and int8 on all threads,
// beside a plain read of the same memory and the most multiply-adds a second. Interleaved rounds;
// the best of each by the processor time of all threads and by the wall clock: attend_bench [ROUNDS
// [PART OF A CASE'S NAME]]
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "cpu/attend_run.h"
#include "cpu/kernel_choice.h"
#include "cpu/kernels.h"
#include "cpu/roofline.h"
#include "platform/isa.h"
#include "platform/memory.h"
#include "platform/thread_pool.h"

namespace hearth {
namespace {

constexpr int kHeads = 64, kKvHeads = 8, kHeadDim = 64, kLayers = 12;
constexpr int kPoolBlocks = 2304;  // 890 MiB of int16, three times the last-level cache seen so far

struct Case {
  const char* name;
  int tokens, context, window;
  int sequences, layers;
};
constexpr Case kCases[] = {
    {"decode, depth 512", 1, 512, 0, 16, 12},
    {"decode, depth 8192", 1, 8192, 0, 4, 12},
    {"decode, depth 8192, window 128", 1, 8192, 128, 16, 12},
    {"4 tokens, depth 8192", 4, 8192, 0, 2, 12},
    {"prefill 512", 512, 0, 0, 2, 2},
    {"prefill 512, window 128", 512, 0, 128, 4, 2},
    {"prefill 512, depth 8192", 512, 8192, 0, 1, 1},
    {"prefill 128, depth 32768", 128, 32768, 0, 1, 1},
};

// Kernels under measurement, and the processor time spent in them.
const KernelTable* measured = nullptr;
std::atomic<int64_t> nanoseconds{0};

int64_t ThreadNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}
template <AttendKernel KernelTable::* kKernel>
void Timed(const AttendArgs& args, int kv_begin, int kv_end) {
  const int64_t start = ThreadNanoseconds();
  (measured->*kKernel)(args, kv_begin, kv_end);
  nanoseconds += ThreadNanoseconds() - start;
}

struct Candidate {
  std::string name;
  KernelTable kernels;
  KvCode code;
};
struct Times {
  double processor = 1e9, wall = 1e9;  // seconds; the processor's as if shared evenly
};

int FirstVisible(const Case& c, int position) {
  return c.window > 0 ? std::max(0, position - c.window + 1) : 0;
}
double NumPositions(const Case& c) {  // summed over tokens
  double sum = 0;
  for (int t = 0; t < c.tokens; ++t) sum += c.context + t + 1 - FirstVisible(c, c.context + t);
  return sum;
}

class Rig {
 public:
  Rig(ThreadPool& pool, KvCode code)
      : pool_(pool), code_bytes_(code == KvCode::kInt8 ? 1 : 2), run_(timed_, pool, code) {
    timed_.attend = Timed<&KernelTable::attend>;
    timed_.attend_int8 = Timed<&KernelTable::attend_int8>;
    timed_.merge_spans = Timed<&KernelTable::merge_spans>;
    auto made = LargeBuffer::Make(static_cast<size_t>(kPoolBlocks * block_bytes()));
    HEARTH_CHECK(made.ok());
    memory_ = std::make_unique<LargeBuffer>(*std::move(made));
    bytes_ = reinterpret_cast<uint8_t*>(memory_->bytes().data());
    pool_.Run(kPoolBlocks, 1, [&](Range range, int) {
      for (int block = range.begin; block < range.end; ++block) Fill(block);
    });
    sinks_.assign(kHeads, 0.5f);
    q_.resize(size_t{512} * kHeads * kHeadDim);
    for (size_t i = 0; i < q_.size(); ++i) q_[i] = static_cast<float>(i * 37 % 101) * 0.02f - 1.0f;
    out_.resize(q_.size());
  }

  int64_t layer_bytes() const { return kKvHeads * KvHeadBytes(kHeadDim, code_bytes_); }
  int64_t block_bytes() const { return kLayers * layer_bytes(); }

  void Measure(const Case& c, const Candidate& candidate, Times& best) {
    measured = &candidate.kernels;
    nanoseconds = 0;
    const auto start = std::chrono::steady_clock::now();
    for (int s = 0; s < c.sequences; ++s) {
      PlaceBlocks(c, s);
      for (int layer = 0; layer < c.layers; ++layer) Layer(c, layer);
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    best.wall = std::min(best.wall, wall.count());
    best.processor =
        std::min(best.processor, 1e-9 * static_cast<double>(nanoseconds) / pool_.size());
  }

 private:
  void Fill(int block) {
    uint8_t* at = bytes_ + block * block_bytes();
    const int num_code_bytes = 2 * kBlockTokens * kHeadDim * code_bytes_;
    uint64_t seed = static_cast<uint64_t>(block) + 1;
    for (int i = 0; i < kLayers * kKvHeads; ++i, at += KvHeadBytes(kHeadDim, code_bytes_)) {
      for (int j = 0; j < num_code_bytes; j += 2) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const auto bits = static_cast<uint16_t>(seed >> 48);
        std::memcpy(at + j, &bits, sizeof bits);
      }
      auto* scales = reinterpret_cast<float*>(at + num_code_bytes);
      std::fill_n(scales, 2 * kBlockTokens, code_bytes_ == 1 ? 2.5e-3f : 1e-5f);
    }
  }
  // Blocks of a sequence lie scattered, as they do in a server that has run for a while.
  void PlaceBlocks(const Case& c, int sequence) {
    const int blocks = (c.context + c.tokens + kBlockTokens - 1) / kBlockTokens;
    table_.resize(static_cast<size_t>(blocks));
    for (int b = 0; b < blocks; ++b) {
      table_[static_cast<size_t>(b)] = (sequence * 577 + b) * 985 % kPoolBlocks;
    }
  }
  void Layer(const Case& c, int layer) {
    AttendArgs common{};
    common.q = q_.data();
    common.out = out_.data();
    common.pool = bytes_;
    common.sinks = sinks_.data();
    common.q_stride = kHeads * kHeadDim;
    common.block_bytes = block_bytes();
    common.layer_offset = layer * layer_bytes();
    common.window = c.window;
    common.n_heads = kHeads;
    common.n_kv_heads = kKvHeads;
    common.d_head = kHeadDim;
    common.scale = 0.125f;
    const AttendSlice slice{0, c.tokens, c.context, table_.data()};
    run_.Run(common, {&slice, 1});
  }

  ThreadPool& pool_;
  int code_bytes_;
  KernelTable timed_ = ScalarKernels();
  AttendRun run_;
  std::unique_ptr<LargeBuffer> memory_;
  uint8_t* bytes_;
  std::vector<float> sinks_, q_, out_;
  std::vector<int32_t> table_;
};

void Run(int rounds, const char* only) {
  ThreadPool pool(2);
  Rig wide(pool, KvCode::kInt16), narrow(pool, KvCode::kInt8);
  const auto rig_of = [&](const Candidate& c) -> Rig& {
    return c.code == KvCode::kInt8 ? narrow : wide;
  };
  std::vector<Candidate> candidates;
  for (const Isa isa : SupportedIsas()) {
    if (isa == Isa::kAvx2 || isa == Isa::kAvx512Vnni) {
      candidates.push_back({NameOf(isa), KernelsOf(isa), KvCode::kInt16});
      candidates.push_back({std::string(NameOf(isa)) + " int8", KernelsOf(isa), KvCode::kInt8});
    }
  }
  auto rooflines = Rooflines::Make(2);
  HEARTH_CHECK(rooflines.ok());
  constexpr size_t kNumCases = std::size(kCases);
  std::vector<std::vector<Times>> best(kNumCases, std::vector<Times>(candidates.size()));
  double read = 0, fused = 0;
  for (int round = 0; round < rounds; ++round) {
    read = std::max(read, rooflines->StreamReadBytesPerSecond());
    // The same ports, four times the products.
    fused = std::max(fused, rooflines->VnniOpsPerSecond().value_or(0) / 4);
    for (size_t i = 0; i < kNumCases; ++i) {
      if (std::strstr(kCases[i].name, only) == nullptr) continue;
      for (size_t k = 0; k < candidates.size(); ++k) {
        rig_of(candidates[k]).Measure(kCases[i], candidates[k], best[i][k]);
      }
    }
  }
  std::printf("stream read %.1f GB/s, multiply-adds %.0f GFLOP/s\n", read * 1e-9, fused * 1e-9);
  std::printf("%-32s %-15s %9s %9s %8s %6s %8s %6s\n", "per layer, rates by processor time", "",
              "us", "us wall", "GB/s", "read", "GFLOP/s", "peak");
  for (size_t i = 0; i < kNumCases; ++i) {
    const Case& c = kCases[i];
    if (std::strstr(c.name, only) == nullptr) continue;
    const double layers = static_cast<double>(c.sequences) * c.layers;
    const int from = FirstVisible(c, c.context) / kBlockTokens;
    const int blocks = (c.context + c.tokens + kBlockTokens - 1) / kBlockTokens - from;
    for (size_t k = 0; k < candidates.size(); ++k) {
      const double bytes = static_cast<double>(blocks * rig_of(candidates[k]).layer_bytes());
      const double seconds = best[i][k].processor / layers;
      const double flops = 4.0 * NumPositions(c) * kHeads * kHeadDim;
      std::printf("%-32s %-15s %9.1f %9.1f %8.2f %5.0f%% %8.1f %5.0f%%\n", c.name,
                  candidates[k].name.c_str(), seconds * 1e6, best[i][k].wall / layers * 1e6,
                  bytes / seconds * 1e-9, 100 * bytes / seconds / read, flops / seconds * 1e-9,
                  100 * flops / seconds / fused);
    }
  }
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  hearth::Run(argc > 1 ? std::atoi(argv[1]) : 5, argc > 2 ? argv[2] : "");
  return 0;
}
