// SPDX-License-Identifier: Apache-2.0
#include "ptx_run.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/num.h"
#include "ptx_order.h"
#include "ptx_shared.h"

namespace hearth::cuda {
namespace {

constexpr int kLanes = 32;
constexpr int kDone = 1 << 30;  // the pc of a lane that returned

[[noreturn]] void Die(const std::string& why) { Refuse("PTX interpreter", why); }

struct PendingCopy {
  uint64_t to, from;
};

struct PtxWarp {
  std::vector<uint64_t> registers;  // [register, lane]
  int pc[kLanes] = {};
  bool waits = false;  // at the block's barrier
  std::vector<PendingCopy> open[kLanes];
  std::vector<std::vector<PendingCopy>> groups[kLanes];
};

// One block of a launch.
class PtxBlock {
 public:
  PtxBlock(const PtxKernel& kernel, const Launch& launch, const uint8_t* params,
           const DeviceMemory& memory, PtxOrder& order, PtxCounters& counters)
      : kernel_(kernel),
        params_(params),
        memory_(memory),
        order_(order),
        counters_(counters),
        shared_(launch.shared_bytes),
        warps_(static_cast<size_t>(launch.threads / kLanes)) {
    if (launch.threads % kLanes != 0) Die("a block that is no multiple of 32 threads");
    for (PtxWarp& warp : warps_) {
      // Registers start as rubbish, a NaN as floats.
      warp.registers.assign(static_cast<size_t>(kernel.num_registers) * kLanes,
                            0xffffa5a5ffffa5a5u);
    }
  }

  void Run(int block_x, int block_y, int block_z) {
    block_[0] = block_x;
    block_[1] = block_y;
    block_[2] = block_z;
    order_.StartBlock();
    for (;;) {
      int num_done = 0, num_waiting = 0;
      for (size_t w = 0; w < warps_.size(); ++w) {
        warp_ = &warps_[w];
        first_thread_ = static_cast<int>(w) * kLanes;
        RunWarp();
        num_done += NextPc() == kDone ? 1 : 0;
        num_waiting += warp_->waits ? 1 : 0;
      }
      if (num_waiting == 0) return;
      if (num_done > 0) Die("a warp returned while others wait at a barrier");
      for (PtxWarp& warp : warps_) warp.waits = false;
      shared_.NextEpoch();
      order_.Barrier();
    }
  }

 private:
  uint64_t& At(int reg, int lane) {
    return warp_->registers[static_cast<size_t>(reg * kLanes + lane)];
  }
  uint64_t Value(const PtxOperand& operand, int lane) {
    switch (operand.kind) {
      case PtxOperand::Kind::kRegister:
        return At(operand.index, lane);
      case PtxOperand::Kind::kThread:
        return operand.index == 0 ? static_cast<uint64_t>(first_thread_ + lane) : 0;
      case PtxOperand::Kind::kBlock:
        return static_cast<uint64_t>(block_[operand.index]);
      default:
        return operand.number;
    }
  }
  uint64_t AddressOf(const PtxOperand& operand, int lane) {
    if (operand.kind != PtxOperand::Kind::kRegister) return operand.number;
    return At(operand.index, lane) + operand.number;
  }
  static bool NeedsAll(const PtxInstruction& instruction) {
    return instruction.kind == PtxKind::kBarrier || instruction.kind == PtxKind::kShuffle ||
           instruction.kind == PtxKind::kMma16832 || instruction.kind == PtxKind::kMma8816 ||
           instruction.kind == PtxKind::kMmaHalf;
  }
  // The lowest instruction that some lanes stand at. One that all lanes must come to waits for
  // those that are still on their way: nvcc places parts of a loop behind what follows it.
  int NextPc() const {
    int pc = *std::min_element(warp_->pc, warp_->pc + kLanes);
    while (pc < static_cast<int>(kernel_.code.size()) &&
           NeedsAll(kernel_.code[static_cast<size_t>(pc)])) {
      int next = kDone;
      for (const int other : warp_->pc) {
        if (other > pc) next = std::min(next, other);
      }
      if (next == kDone) break;
      pc = next;
    }
    return pc;
  }

  // Until the warp waits at a barrier or all of its lanes returned.
  void RunWarp() {
    while (!warp_->waits) {
      const int pc = NextPc();
      if (pc == kDone) return;
      if (pc >= static_cast<int>(kernel_.code.size())) Die("ran past the end of " + kernel_.name);
      here_ = &kernel_.code[static_cast<size_t>(pc)];
      active_ = 0;
      for (int lane = 0; lane < kLanes; ++lane) {
        if (warp_->pc[lane] != pc) continue;
        warp_->pc[lane] = pc + 1;
        const bool is_true =
            here_->guard < 0 || ((At(here_->guard, lane) & 1) != 0) != here_->is_guard_negated;
        if (is_true) active_ |= 1u << lane;
      }
      ++counters_.instructions;
      if (active_ != 0) Step();
    }
  }

  template <class F>
  void EachLane(F&& body) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((active_ >> lane & 1) != 0) body(lane);
    }
  }
  void NeedAll() {
    if (active_ == 0xffffffffu) return;
    Die(kernel_.name + ": not all lanes of a warp come to " + here_->text);
  }

  void Step() {
    switch (here_->kind) {
      case PtxKind::kAlu:
        return Alu();
      case PtxKind::kPack:
      case PtxKind::kUnpack:
        return Pair();
      case PtxKind::kLoad:
      case PtxKind::kStore:
        return Access();
      case PtxKind::kAtomicAdd:
        return EachLane([&](int lane) {
          const uint64_t at = AddressOf(here_->from[0], lane) & 0xffffffffu;
          const uint64_t old = shared_.Add(at, Value(here_->from[1], lane), first_thread_ + lane);
          At(here_->to[0], lane) = old;
        });
      case PtxKind::kArrive:
        return EachLane([&](int lane) { Arrive(lane); });
      case PtxKind::kBarrier:
        // Lanes that have not come yet would be further down, past this barrier.
        NeedAll();
        warp_->waits = true;
        ++counters_.barriers;
        return;
      case PtxKind::kShuffle:
        return Shuffle();
      case PtxKind::kMma16832:
      case PtxKind::kMma8816:
        return Mma();
      case PtxKind::kMmaHalf:
        return MmaHalf();
      case PtxKind::kCopyAsync:
        return CopyAsync();
      case PtxKind::kCopyCommit:
        return EachLane([&](int lane) {
          warp_->groups[lane].push_back(std::move(warp_->open[lane]));
          warp_->open[lane].clear();
        });
      case PtxKind::kCopyWait:
        return EachLane([&](int lane) { CopyWait(lane); });
      case PtxKind::kBranch:
        return EachLane([&](int lane) { warp_->pc[lane] = here_->target; });
      case PtxKind::kReturn:
        return EachLane([&](int lane) { Return(lane); });
    }
  }

  void Alu() {
    const AluFunction function = here_->alu.function;
    const PtxOperand none{};
    const PtxOperand& a = here_->from[0];
    const PtxOperand& b = here_->from.size() > 1 ? here_->from[1] : none;
    const PtxOperand& c = here_->from.size() > 2 ? here_->from[2] : none;
    const int to = here_->to[0];
    EachLane(
        [&](int lane) { At(to, lane) = function(Value(a, lane), Value(b, lane), Value(c, lane)); });
  }

  void Pair() {
    const int bits = 8 * here_->bytes;
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    EachLane([&](int lane) {
      const uint64_t first = Value(here_->from[0], lane);
      if (here_->kind == PtxKind::kPack) {
        At(here_->to[0], lane) = (Value(here_->from[1], lane) & mask) << bits | (first & mask);
      } else {
        At(here_->to[0], lane) = first & mask;
        At(here_->to[1], lane) = first >> bits & mask;
      }
    });
  }

  void Shuffle() {
    NeedAll();
    uint64_t values[kLanes];
    EachLane([&](int lane) {
      values[lane] = Value(here_->from[0], lane);
      const bool whole = (Value(here_->from[2], lane) & 0x1fffu) == 31 &&
                         static_cast<uint32_t>(Value(here_->from[3], lane)) == 0xffffffffu;
      if (!whole) Die("a shuffle of less than a warp: " + here_->text);
    });
    EachLane([&](int lane) {
      At(here_->to[0], lane) = values[lane ^ static_cast<int>(Value(here_->from[1], lane) & 31)];
    });
  }

  // As the manual lays fragments out: with g = lane / 4 and t = lane % 4, register i of a holds row
  // g + 8 (i mod 2) of columns 16 (i / 2) + 4 t and on; of b, column g of rows 16 i + 4 t and on.
  void Mma() {
    NeedAll();
    ++counters_.mma;
    const bool is_large = here_->kind == PtxKind::kMma16832;
    const int num_a = is_large ? 4 : 1, num_b = is_large ? 2 : 1;
    const int rows = is_large ? 16 : 8, depth = 16 * num_b;
    int8_t a[16][32], b[32][8];
    EachLane([&](int lane) {
      const int g = lane / 4, t = lane % 4;
      for (int i = 0; i < num_a; ++i) {
        const uint64_t word = Value(here_->from[static_cast<size_t>(i)], lane);
        for (int byte = 0; byte < 4; ++byte) {
          a[g + 8 * (i % 2)][16 * (i / 2) + 4 * t + byte] = static_cast<int8_t>(word >> (8 * byte));
        }
      }
      for (int i = 0; i < num_b; ++i) {
        const uint64_t word = Value(here_->from[static_cast<size_t>(num_a + i)], lane);
        for (int byte = 0; byte < 4; ++byte) {
          b[16 * i + 4 * t + byte][g] = static_cast<int8_t>(word >> (8 * byte));
        }
      }
    });
    uint32_t product[16][8] = {};
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < 8; ++column) {
        for (int k = 0; k < depth; ++k) {
          product[row][column] += static_cast<uint32_t>(a[row][k] * b[k][column]);
        }
      }
    }
    EachLane([&](int lane) {
      for (size_t i = 0; i < here_->to.size(); ++i) {
        const uint64_t sum = Value(here_->from[static_cast<size_t>(num_a + num_b) + i], lane);
        const uint32_t add =
            product[lane / 4 + static_cast<int>(i) / 2 * 8][2 * (lane % 4) + i % 2];
        At(here_->to[i], lane) = static_cast<uint32_t>(sum + add);
      }
    });
  }

  // Of halves, two to a register: register i of a holds row g + 8 (i mod 2) of columns 8 (i / 2) +
  // 2 t and on; of b, column g of rows 8 i + 2 t and on. The sum is rounded once, which is one of
  // the ways that the manual leaves open.
  void MmaHalf() {
    NeedAll();
    ++counters_.mma;
    const int num_b = here_->from.size() == 10 ? 2 : 1, num_a = 2 * num_b;
    double a[16][16] = {}, b[16][8] = {};
    const auto half = [&](size_t from, int lane, int which) {
      return double{F32FromF16(
          static_cast<uint16_t>(Value(here_->from[from], lane) >> (16 * which) & 0xffffu))};
    };
    EachLane([&](int lane) {
      const int g = lane / 4, t = lane % 4;
      for (int which = 0; which < 2; ++which) {
        for (int i = 0; i < num_a; ++i) {
          a[g + 8 * (i % 2)][8 * (i / 2) + 2 * t + which] =
              half(static_cast<size_t>(i), lane, which);
        }
        for (int i = 0; i < num_b; ++i) {
          b[8 * i + 2 * t + which][g] = half(static_cast<size_t>(num_a + i), lane, which);
        }
      }
    });
    EachLane([&](int lane) {
      for (size_t i = 0; i < here_->to.size(); ++i) {
        const auto bits =
            static_cast<uint32_t>(Value(here_->from[static_cast<size_t>(num_a + num_b) + i], lane));
        double sum = std::bit_cast<float>(bits);
        const int row = lane / 4 + static_cast<int>(i) / 2 * 8;
        const int column = 2 * (lane % 4) + static_cast<int>(i % 2);
        for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
        At(here_->to[i], lane) = std::bit_cast<uint32_t>(static_cast<float>(sum));
      }
    });
  }

  void CheckGlobal(uint64_t address, size_t bytes) {
    if (address % bytes != 0) Die("not aligned: " + here_->text);
    if (!memory_.Holds(address, bytes)) Die("outside of every allocation: " + here_->text);
  }

  // Where a lane's access lies on the host.
  uint8_t* Place(uint64_t address, size_t bytes, int lane) {
    const bool is_load = here_->kind == PtxKind::kLoad;
    if (here_->space == PtxSpace::kShared) {
      return shared_.Access(address & 0xffffffffu, bytes, first_thread_ + lane, !is_load,
                            here_->text);
    }
    if (here_->space == PtxSpace::kParam) {
      if (address + bytes > kernel_.param_bytes || !is_load)
        Die("outside of parameters: " + here_->text);
      return const_cast<uint8_t*>(params_) + address;
    }
    CheckGlobal(address, bytes);
    NoteGlobal(address, bytes, first_thread_ + lane, is_load);
    return reinterpret_cast<uint8_t*>(address);
  }

  void NoteGlobal(uint64_t address, size_t bytes, int thread, bool is_load) {
    const char* wrong = order_.Note(address, bytes, thread, is_load);
    if (wrong != nullptr) Die(kernel_.name + ": " + wrong + ": " + here_->text);
  }

  void Arrive(int lane) {
    const uint64_t address = AddressOf(here_->from[0], lane);
    CheckGlobal(address, 4);
    if (here_->orders) order_.Arrive(address, first_thread_ + lane);
    uint32_t before;
    std::memcpy(&before, reinterpret_cast<const void*>(address), 4);
    const auto sum = static_cast<uint32_t>(before + Value(here_->from[1], lane));
    std::memcpy(reinterpret_cast<void*>(address), &sum, 4);
    At(here_->to[0], lane) = before;
  }

  void Access() {
    const bool is_load = here_->kind == PtxKind::kLoad;
    const size_t count = is_load ? here_->to.size() : here_->from.size() - 1;
    const auto each = static_cast<size_t>(here_->bytes);
    EachLane([&](int lane) {
      uint8_t* at = Place(AddressOf(here_->from[0], lane), each * count, lane);
      for (size_t i = 0; i < count; ++i, at += each) {
        if (!is_load) {
          const uint64_t value = Value(here_->from[i + 1], lane);
          std::memcpy(at, &value, each);
          continue;
        }
        uint64_t value = 0;
        std::memcpy(&value, at, each);
        const uint64_t sign = uint64_t{1} << (8 * each - 1);
        if (here_->extends) value = (value ^ sign) - sign;
        At(here_->to[i], lane) = value;
      }
    });
    CountAccess(each * count, is_load);
  }

  void CountAccess(size_t bytes, bool is_load) {
    if (here_->space == PtxSpace::kParam) return;
    std::set<uint64_t> addresses;
    EachLane([&](int lane) { addresses.insert(AddressOf(here_->from[0], lane)); });
    if (here_->space == PtxSpace::kShared) {
      counters_.wavefronts += Wavefronts(addresses, bytes);
      counters_.ideal_wavefronts += static_cast<int64_t>((addresses.size() * bytes + 127) / 128);
      return;
    }
    std::set<uint64_t> sectors;
    for (const uint64_t at : addresses) sectors.insert({at / 32, (at + bytes - 1) / 32});
    const auto asked = static_cast<int64_t>(addresses.size() * bytes);
    const auto touched = static_cast<int64_t>(sectors.size());
    (is_load ? counters_.load_bytes : counters_.store_bytes) += asked;
    (is_load ? counters_.load_sectors : counters_.store_sectors) += touched;
    if (!here_->is_stream) return;
    counters_.stream_bytes += asked;
    counters_.stream_sectors += touched;
  }

  void CopyAsync() {
    if (Value(here_->from[2], 0) != 16) Die("a copy of other than 16 bytes: " + here_->text);
    std::set<uint64_t> sectors;
    EachLane([&](int lane) {
      const uint64_t to = AddressOf(here_->from[0], lane) & 0xffffffffu;
      const uint64_t from = AddressOf(here_->from[1], lane);
      CheckGlobal(from, 16);
      NoteGlobal(from, 16, first_thread_ + lane, true);
      std::memset(shared_.Access(to, 16, first_thread_ + lane, true, here_->text), 0xff, 16);
      warp_->open[lane].push_back({to, from});
      sectors.insert({from / 32, (from + 15) / 32});
      counters_.load_bytes += 16;
    });
    counters_.load_sectors += static_cast<int64_t>(sectors.size());
  }

  void CopyWait(int lane) {
    auto& groups = warp_->groups[lane];
    while (groups.size() > Value(here_->from[0], lane)) {
      for (const PendingCopy& copy : groups.front()) {
        uint8_t* to = shared_.Access(copy.to, 16, first_thread_ + lane, true, here_->text);
        std::memcpy(to, reinterpret_cast<const uint8_t*>(copy.from), 16);
      }
      groups.erase(groups.begin());
    }
  }

  void Return(int lane) {
    bool is_pending = !warp_->open[lane].empty();
    for (const auto& group : warp_->groups[lane]) is_pending |= !group.empty();
    if (is_pending) Die("a thread returned with asynchronous copies under way");
    warp_->pc[lane] = kDone;
  }

  const PtxKernel& kernel_;
  const uint8_t* const params_;
  const DeviceMemory& memory_;
  PtxOrder& order_;
  PtxCounters& counters_;
  PtxShared shared_;
  std::vector<PtxWarp> warps_;
  int block_[3] = {};
  // Of the instruction under way:
  PtxWarp* warp_ = nullptr;
  int first_thread_ = 0;
  const PtxInstruction* here_ = nullptr;
  uint32_t active_ = 0;
};

}  // namespace

void PtxCounters::Add(const PtxCounters& other) {
  instructions += other.instructions;
  mma += other.mma;
  barriers += other.barriers;
  load_bytes += other.load_bytes;
  load_sectors += other.load_sectors;
  stream_bytes += other.stream_bytes;
  stream_sectors += other.stream_sectors;
  store_bytes += other.store_bytes;
  store_sectors += other.store_sectors;
  wavefronts += other.wavefronts;
  ideal_wavefronts += other.ideal_wavefronts;
}

PtxMachine::PtxMachine(std::string name, const std::string& text)
    : name_(std::move(name)), module_(text) {}

void PtxMachine::Run(const std::string& kernel, const Launch& launch, const void* args, size_t size,
                     const DeviceMemory& memory) {
  const PtxKernel& code = module_.kernel(kernel);
  if (size != code.param_bytes) Die("the arguments of " + kernel + " have another size");
  PtxCounters counters;
  PtxOrder order;
  for (int z = 0; z < launch.grid_z; ++z) {
    for (int y = 0; y < launch.grid_y; ++y) {
      for (int x = 0; x < launch.grid_x; ++x) {
        PtxBlock(code, launch, static_cast<const uint8_t*>(args), memory, order, counters)
            .Run(x, y, z);
      }
    }
  }
  counters_[kernel].Add(counters);
}

}  // namespace hearth::cuda
