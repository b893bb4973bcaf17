// SPDX-License-Identifier: Apache-2.0
// The source emulator: kernels compiled for the host, one fiber per thread, one block at a time. It
// is stricter than a GPU: shared memory starts as NaN, copies that nobody waited for never arrive,
// and lanes that meet must come from the same line of source.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

#include "cuda/args.h"
#include "cuda/attend.h"
#include "cuda/blocks.h"
#include "cuda/decode.h"
#include "cuda/experts.h"
#include "cuda/flash.h"
#include "cuda/floats.h"
#include "cuda/isa.h"
#include "cuda/matmul.h"
#include "cuda/rope.h"
#include "cuda/route.h"
#include "cuda/rows.h"
#include "cuda/supers.h"
#include "cuda/top.h"
#include "fibers.h"
#include "machine.h"

namespace hearth::cuda {

void Refuse(const char* machine, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", machine, why.c_str());
  std::fflush(stderr);
  std::_Exit(3);
}

namespace {

constexpr int kNoSite = -1;

struct PendingCopy {
  void* to;
  const void* from;
};

struct EmulatedThread {
  enum class State { kReady, kAtBarrier, kInWarp, kDone };
  Fiber fiber;
  State state = State::kReady;
  int site = kNoSite;  // where it waits
  std::vector<PendingCopy> open;
  std::vector<std::vector<PendingCopy>> groups;
};

// What the lanes of a warp bring to an operation that all of them take part in.
struct WarpMeeting {
  int arrived = 0, site = kNoSite;
  const char* operation = nullptr;
  uint32_t in[kWarp][10];
  uint32_t out[kWarp][4];
};

class Emulator;
Emulator* running = nullptr;

class Emulator {
 public:
  Emulator(const Launch& launch, Schedule schedule, void (*kernel)(const void*), const void* args)
      : launch_(launch),
        schedule_(schedule),
        kernel_(kernel),
        args_(args),
        threads_(static_cast<size_t>(launch.threads)),
        warps_(static_cast<size_t>((launch.threads + kWarp - 1) / kWarp)),
        shared_(static_cast<uint8_t*>(std::aligned_alloc(16, SharedSize()))) {}
  ~Emulator() { std::free(shared_); }
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  void RunGrid() {
    running = this;
    const int count = launch_.grid_x * launch_.grid_y * launch_.grid_z;
    std::vector<int> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    if (schedule_ == Schedule::kReverse) std::reverse(order.begin(), order.end());
    if (schedule_ == Schedule::kRandom) std::shuffle(order.begin(), order.end(), random_);
    for (const int block : order) {
      here_.block_x = block % launch_.grid_x;
      here_.block_y = block / launch_.grid_x % launch_.grid_y;
      here_.block_z = block / launch_.grid_x / launch_.grid_y;
      RunBlock();
    }
    running = nullptr;
  }

  const host::Index& here() const { return here_; }
  uint8_t* shared() { return shared_; }

  void Barrier(int site) {
    EmulatedThread& self = Self();
    if (num_at_barrier_ > 0 && site != barrier_site_)
      Die("threads of a block wait at different barriers");
    barrier_site_ = site;
    if (++num_at_barrier_ < launch_.threads) {
      self.state = EmulatedThread::State::kAtBarrier;
      self.fiber.Leave();
      return;
    }
    num_at_barrier_ = 0;
    for (EmulatedThread& thread : threads_) thread.state = EmulatedThread::State::kReady;
  }

  // The last lane to arrive computes for all.
  template <class F>
  const uint32_t* Meet(const char* operation, int site, const uint32_t* in, int count,
                       F&& compute) {
    const int lane = here_.thread % kWarp;
    WarpMeeting& warp = warps_[static_cast<size_t>(here_.thread / kWarp)];
    if (warp.arrived > 0 && (warp.site != site || warp.operation != operation)) {
      Die("lanes of a warp meet from different lines");
    }
    warp.site = site;
    warp.operation = operation;
    std::copy_n(in, count, warp.in[lane]);
    if (++warp.arrived < kWarp) {
      Self().state = EmulatedThread::State::kInWarp;
      Self().fiber.Leave();
      return warp.out[lane];
    }
    warp.arrived = 0;
    compute(warp);
    const int first = here_.thread / kWarp * kWarp;
    for (int i = 0; i < kWarp; ++i) Thread(first + i).state = EmulatedThread::State::kReady;
    return warp.out[lane];
  }

  void CopyAsync16(void* to, const void* from) {
    if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16 != 0) {
      Die("an asynchronous copy is not aligned");
    }
    CheckShared(to, 16);
    std::memset(to, 0xff, 16);
    Self().open.push_back({to, from});
  }
  void CopyCommit() {
    Self().groups.push_back(std::move(Self().open));
    Self().open.clear();
  }
  void CopyWait(int most_pending) {
    auto& groups = Self().groups;
    while (static_cast<int>(groups.size()) > most_pending) {
      for (const PendingCopy& copy : groups.front()) std::memcpy(copy.to, copy.from, 16);
      groups.erase(groups.begin());
    }
  }
  void CheckShared(const void* at, int64_t bytes) const {
    const auto* byte = static_cast<const uint8_t*>(at);
    if (byte < shared_ || byte + bytes > shared_ + launch_.shared_bytes) {
      Die("an address outside of shared memory");
    }
  }

 private:
  size_t SharedSize() const {
    return static_cast<size_t>((launch_.shared_bytes + 15) / 16 * 16 + 16);
  }
  EmulatedThread& Thread(int index) { return threads_[static_cast<size_t>(index)]; }
  EmulatedThread& Self() { return Thread(here_.thread); }

  [[noreturn]] void Die(const char* why) const {
    char text[200];
    std::snprintf(text, sizeof text, "%s (block %d %d %d, thread %d)", why, here_.block_x,
                  here_.block_y, here_.block_z, here_.thread);
    Refuse("source emulator", text);
  }

  static void Body() {
    running->kernel_(running->args_);
    EmulatedThread& self = running->Self();
    bool is_pending = !self.open.empty();
    for (const auto& group : self.groups) is_pending |= !group.empty();
    if (is_pending) running->Die("a thread ended with asynchronous copies under way");
    self.state = EmulatedThread::State::kDone;
    --running->num_live_;
    self.fiber.Leave(true);
  }

  void RunBlock() {
    std::memset(shared_, 0xff, SharedSize());
    num_live_ = launch_.threads;
    num_at_barrier_ = 0;
    for (EmulatedThread& thread : threads_) {
      thread.fiber.Start(&Body);
      thread.state = EmulatedThread::State::kReady;
      thread.open.clear();
      thread.groups.clear();
    }
    std::vector<int> order(threads_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    if (schedule_ == Schedule::kReverse) std::reverse(order.begin(), order.end());
    while (num_live_ > 0) {
      if (schedule_ == Schedule::kRandom) std::shuffle(order.begin(), order.end(), random_);
      bool has_run = false;
      for (const int i : order) {
        if (Thread(i).state != EmulatedThread::State::kReady) continue;
        has_run = true;
        here_.thread = i;
        Thread(i).fiber.Resume();
      }
      if (!has_run) Die("no thread can go on: some wait for others that ended or wait elsewhere");
    }
  }

  const Launch launch_;
  const Schedule schedule_;
  void (*const kernel_)(const void*);
  const void* const args_;
  std::vector<EmulatedThread> threads_;
  std::vector<WarpMeeting> warps_;
  uint8_t* const shared_;
  host::Index here_{};
  int num_live_ = 0, num_at_barrier_ = 0, barrier_site_ = kNoSite;
  std::mt19937_64 random_{20261117};
};

// Rows and columns of a tile as cuda/isa.h describes a lane's share of it; the bytes are laid out
// in order first, so that the compiler makes vectors of the sums.
void MultiplyTiles(WarpMeeting& warp) {
  int16_t a[16][32], b[8][32];
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int i = 0; i < 6; ++i) {
      const uint32_t word = warp.in[lane][4 + i];
      int16_t* to = i < 4 ? &a[lane / 4 + i % 2 * 8][i / 2 * 16 + lane % 4 * 4]
                          : &b[lane / 4][(i - 4) * 16 + lane % 4 * 4];
      for (int k = 0; k < 4; ++k) to[k] = static_cast<int8_t>(word >> (8 * k));
    }
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + i / 2 * 8, column = 2 * (lane % 4) + i % 2;
      int32_t sum = 0;  // at most 32 * 2^14
      for (int k = 0; k < 32; ++k) sum += a[row][k] * b[column][k];
      warp.out[lane][i] = warp.in[lane][i] + static_cast<uint32_t>(sum);
    }
  }
}

// The same for halves. Products are exact; what the hardware does with their sum is not specified,
// here it is rounded once.
void MultiplyHalves(WarpMeeting& warp) {
  double a[16][16], b[8][16];
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int i = 0; i < 6; ++i) {
      const uint32_t word = warp.in[lane][4 + i];
      double* to = i < 4 ? &a[lane / 4 + i % 2 * 8][i / 2 * 8 + lane % 4 * 2]
                         : &b[lane / 4][(i - 4) * 8 + lane % 4 * 2];
      to[0] = F32FromF16(static_cast<uint16_t>(word & 0xffffu));
      to[1] = F32FromF16(static_cast<uint16_t>(word >> 16));
    }
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + i / 2 * 8, column = 2 * (lane % 4) + i % 2;
      double sum = FloatOf(warp.in[lane][i]);
      for (int k = 0; k < 16; ++k) sum += a[row][k] * b[column][k];
      warp.out[lane][i] = BitsOf(static_cast<float>(sum));
    }
  }
}

}  // namespace

namespace host {

const Index& Here() { return running->here(); }
uint8_t* SharedMemory() { return running->shared(); }
void Barrier(int site) { running->Barrier(site); }

uint32_t Shuffle(uint32_t value, int source_lane, int site) {
  const uint32_t in[2] = {value, static_cast<uint32_t>(source_lane)};
  return *running->Meet("shuffle", site, in, 2, [](WarpMeeting& warp) {
    for (auto& out : warp.out) out[0] = warp.in[warp.in[&out - warp.out][1]][0];
  });
}

void Mma(int32_t* sums, const uint32_t* a, const uint32_t* b, int site) {
  uint32_t in[10];
  std::memcpy(in, sums, 16);
  std::memcpy(in + 4, a, 16);
  std::memcpy(in + 8, b, 8);
  std::memcpy(sums, running->Meet("mma", site, in, 10, MultiplyTiles), 16);
}

void MmaHalf(float* sums, const uint32_t* a, const uint32_t* b, int site) {
  uint32_t in[10];
  std::memcpy(in, sums, 16);
  std::memcpy(in + 4, a, 16);
  std::memcpy(in + 8, b, 8);
  std::memcpy(sums, running->Meet("mma of halves", site, in, 10, MultiplyHalves), 16);
}

void CopyAsync16(void* shared, const void* global) { running->CopyAsync16(shared, global); }
void CopyCommit() { running->CopyCommit(); }
void CopyWait(int most_pending) { running->CopyWait(most_pending); }
void SharedAdd(int32_t* at, int32_t value) {
  running->CheckShared(at, 4);
  *at = static_cast<int32_t>(static_cast<uint32_t>(*at) + static_cast<uint32_t>(value));
}

int32_t Arrive(int32_t* at) { return (*at)++; }

}  // namespace host

namespace {

template <class Args, void (*kKernel)(const Args&)>
void Call(const void* args) {
  kKernel(*static_cast<const Args*>(args));
}
struct SourceKernel {
  const char* name;
  void (*call)(const void*);
  size_t args_bytes;
};
template <class Args, void (*kKernel)(const Args&)>
constexpr SourceKernel Named(const char* name) {
  return {name, Call<Args, kKernel>, sizeof(Args)};
}
constexpr SourceKernel kKernels[] = {
    Named<NormArgs, NormKernel>("hearth_norm"),
    Named<GluArgs, GluKernel>("hearth_glu"),
    Named<RopeArgs, RopeKernel>("hearth_rope"),
    Named<AttendArgs, AttendKernel>("hearth_attend"),
    Named<CombineArgs, CombineKernel>("hearth_combine"),
    Named<RouteArgs, RouteKernel>("hearth_route"),
    Named<MatmulArgs, MatmulKernel<Mxfp4, 1>>("hearth_mxfp4_few"),
    Named<MatmulArgs, MatmulKernel<Mxfp4, 4>>("hearth_mxfp4_many"),
    Named<MatmulArgs, MatmulKernel<Q8, 1>>("hearth_q8_few"),
    Named<MatmulArgs, MatmulKernel<Q8, 4>>("hearth_q8_many"),
    Named<MatmulArgs, BlockMatmulKernel<WeightKind::kQ4_0>>("hearth_q40"),
    Named<MatmulArgs, BlockMatmulKernel<WeightKind::kQ4_1>>("hearth_q41"),
    Named<MatmulArgs, BlockMatmulKernel<WeightKind::kQ5_0>>("hearth_q50"),
    Named<MatmulArgs, BlockMatmulKernel<WeightKind::kQ5_1>>("hearth_q51"),
    Named<MatmulArgs, BlockMatmulKernel<WeightKind::kIq4Nl>>("hearth_iq4nl"),
    Named<MatmulArgs, SuperMatmulKernel<WeightKind::kQ2K, 1>>("hearth_q2k"),
    Named<MatmulArgs, SuperMatmulKernel<WeightKind::kQ3K, 1>>("hearth_q3k_few"),
    Named<MatmulArgs, SuperMatmulKernel<WeightKind::kQ3K, 4>>("hearth_q3k_many"),
    Named<MatmulArgs, SuperMatmulKernel<WeightKind::kQ4K, 1>>("hearth_q4k"),
    Named<MatmulArgs, SuperMatmulKernel<WeightKind::kQ5K, 1>>("hearth_q5k"),
    Named<MatmulArgs, SuperMatmulKernel<WeightKind::kQ6K, 1>>("hearth_q6k_few"),
    Named<MatmulArgs, SuperMatmulKernel<WeightKind::kQ6K, 4>>("hearth_q6k_many"),
    Named<MatmulArgs, SuperMatmulKernel<WeightKind::kIq4Xs, 1>>("hearth_iq4xs_few"),
    Named<MatmulArgs, SuperMatmulKernel<WeightKind::kIq4Xs, 4>>("hearth_iq4xs_many"),
    Named<FloatMatmulArgs, FloatMatmulKernel<WeightKind::kF32>>("hearth_f32"),
    Named<FloatMatmulArgs, FloatMatmulKernel<WeightKind::kF16>>("hearth_f16"),
    Named<FloatMatmulArgs, FloatMatmulKernel<WeightKind::kBf16>>("hearth_bf16"),
    Named<EmbedArgs, EmbedKernel>("hearth_embed"),
    Named<SortArgs, SortKernel>("hearth_sort"),
    Named<GatherArgs, GatherKernel>("hearth_gather"),
    Named<NormRouteArgs, NormRouteKernel>("hearth_norm_route"),
    Named<DecodeArgs, DecodeKernel>("hearth_decode"),
    Named<TopArgs, TopKernel>("hearth_top"),
    Named<FlashArgs, FlashKernel<64>>("hearth_flash_64"),
    Named<FlashArgs, FlashKernel<128>>("hearth_flash_128"),
    Named<FlashArgs, FlashReduceKernel>("hearth_flash_reduce"),
};

const SourceKernel* Find(const std::string& name) {
  for (const SourceKernel& known : kKernels) {
    if (name == known.name) return &known;
  }
  return nullptr;
}

class SourceMachine : public Machine {
 public:
  explicit SourceMachine(Schedule schedule) : schedule_(schedule) {}
  std::string name() const override {
    constexpr const char* kNames[] = {"forward", "reverse", "random"};
    return std::string("source, ") + kNames[static_cast<int>(schedule_)];
  }
  void Run(const std::string& kernel, const Launch& launch, const void* args, size_t,
           const DeviceMemory&) override {
    const SourceKernel* known = Find(kernel);
    if (known != nullptr) return Emulator(launch, schedule_, known->call, args).RunGrid();
    Refuse("source emulator", "there is no kernel named " + kernel);
  }

 private:
  const Schedule schedule_;
};

}  // namespace

size_t ArgsBytes(const std::string& kernel) {
  const SourceKernel* known = Find(kernel);
  return known == nullptr ? 0 : known->args_bytes;
}

std::unique_ptr<Machine> SourceEmulator(Schedule schedule) {
  return std::make_unique<SourceMachine>(schedule);
}

}  // namespace hearth::cuda
