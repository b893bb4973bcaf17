// SPDX-License-Identifier: Apache-2.0
// The interpreter's other instructions, by small PTX programs: memory, shuffles, tiles, copies,
// branches; and what it must refuse.
#include "ptx_run.h"

#include <gtest/gtest.h>

#include <bit>

#include "base/num.h"

namespace hearth::cuda {
namespace {

struct Pointers {
  const void* in;
  void* out;
};

// A kernel with two pointers: %rd1 is `in`, %rd2 is `out`, %r0 the thread, %rd3 and %rd4 the
// thread's place at four bytes each.
std::string Program(const std::string& body) {
  return ".extern .shared .align 16 .b8 hearth_shared[];\n"
         ".visible .entry k(\n.param .align 8 .b8 k_param_0[16]\n)\n{\n"
         "ld.param.u64 %rd1, [k_param_0];\n"
         "ld.param.u64 %rd2, [k_param_0+8];\n"
         "mov.u32 %r0, %tid.x;\n"
         "mul.wide.u32 %rd5, %r0, 4;\n"
         "add.s64 %rd3, %rd1, %rd5;\n"
         "add.s64 %rd4, %rd2, %rd5;\n" +
         body + "ret;\n}\n";
}

std::vector<uint32_t> RunProgram(const std::string& body, const std::vector<uint32_t>& in,
                                 size_t num_out, int threads = 32, int64_t shared_bytes = 1024) {
  DeviceMemory memory;
  const Pointers args{memory.Copy(in), memory.Copy(std::vector<uint32_t>(num_out, 77))};
  PtxMachine machine("test", Program(body));
  machine.Run("k", {1, 1, 1, threads, shared_bytes}, &args, sizeof args, memory);
  const auto* out = static_cast<const uint32_t*>(args.out);
  return {out, out + num_out};
}

std::vector<uint32_t> Counting(size_t n) {
  std::vector<uint32_t> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<uint32_t>(i) * 0x01010101u;
  return values;
}

TEST(PtxRun, LoadsExtendAndStoresCut) {
  const auto out = RunProgram(
      "ld.global.s8 %r1, [%rd1];\n"
      "ld.global.u8 %r2, [%rd1];\n"
      "ld.global.s16 %r3, [%rd1];\n"
      "ld.u32 %r4, [%rd1+4];\n"
      "ld.global.nc.L1::no_allocate.v2.u32 {%r5, %r6}, [%rd1];\n"
      "setp.eq.s32 %p1, %r0, 0;\n"
      "@!%p1 bra $end;\n"
      "st.global.u32 [%rd2], %r1;\n"
      "st.global.u32 [%rd2+4], %r2;\n"
      "st.global.u32 [%rd2+8], %r3;\n"
      "st.global.u16 [%rd2+12], %r4;\n"
      "st.global.v2.b32 [%rd2+16], {%r6, %r5};\n"
      "$end:\n",
      {0x8000f0ff, 0x12345678}, 6);
  EXPECT_EQ(out, (std::vector<uint32_t>{0xffffffff, 0xff, 0xfffff0ff, 0x00005678, 0x12345678,
                                        0x8000f0ff}));
}

TEST(PtxRun, PairsAreTakenApartAndJoined) {
  const auto out = RunProgram(
      "ld.global.u64 %rd9, [%rd1];\n"
      "mov.b64 {%r1, %r2}, %rd9;\n"
      "mov.b32 {_, %rs1}, %r1;\n"
      "cvt.u32.u16 %r3, %rs1;\n"
      "mov.b64 %rd8, {%r2, %r3};\n"
      "setp.eq.s32 %p1, %r0, 0;\n"
      "@%p1 st.global.u64 [%rd2], %rd8;\n",
      {0x11112222, 0x33334444}, 2);
  EXPECT_EQ(out, (std::vector<uint32_t>{0x33334444, 0x1111}));
}

TEST(PtxRun, ShufflesAcrossTheWarp) {
  const auto out = RunProgram(
      "shfl.sync.bfly.b32 %r1|%p1, %r0, 5, 31, -1;\n"
      "st.global.u32 [%rd4], %r1;\n",
      {0}, 32);
  for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane ^ 5u);
}

// Lanes part, take different ways and meet again: the shuffle after it needs all of them.
TEST(PtxRun, LanesThatPartedMeetAgain) {
  const auto out = RunProgram(
      "mov.u32 %r1, %r0;\n"
      "$loop:\n"
      "setp.ge.s32 %p1, %r1, 40;\n"
      "@%p1 bra $out;\n"
      "add.s32 %r1, %r1, 7;\n"
      "bra.uni $loop;\n"
      "$out:\n"
      "shfl.sync.bfly.b32 %r2|%p2, %r1, 1, 31, -1;\n"
      "st.global.u32 [%rd4], %r2;\n",
      {0}, 32);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t value = lane ^ 1u;
    while (value < 40) value += 7;
    EXPECT_EQ(out[lane], value);
  }
}

// Some come to the barrier and the shuffle from a place behind them, as nvcc lays out ends of
// loops.
TEST(PtxRun, LanesWaitForThoseThatComeFromBehind) {
  const auto out = RunProgram(
      "mov.u32 %r1, %r0;\n"
      "setp.lt.s32 %p1, %r0, 3;\n"
      "@%p1 bra $far;\n"
      "$near:\n"
      "bar.sync 0;\n"
      "shfl.sync.bfly.b32 %r2|%p2, %r1, 1, 31, -1;\n"
      "st.global.u32 [%rd4], %r2;\n"
      "ret;\n"
      "$far:\n"
      "add.s32 %r1, %r1, 100;\n"
      "bra.uni $near;\n",
      {0}, 32);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], (lane ^ 1u) < 3 ? (lane ^ 1u) + 100 : lane ^ 1u);
  }
}

TEST(PtxRun, BarriersOrderWarps) {
  const auto out = RunProgram(
      "mov.u32 %r1, hearth_shared;\n"
      "shl.b32 %r2, %r0, 2;\n"
      "add.s32 %r3, %r1, %r2;\n"
      "st.shared.u32 [%r3], %r0;\n"
      "bar.sync 0;\n"
      "sub.s32 %r4, 252, %r2;\n"
      "ld.shared.u32 %r5, [%r4];\n"
      "st.global.u32 [%rd4], %r5;\n",
      {0}, 64, 64);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 63 - i);
}

TEST(PtxRun, AtomicsAddUp) {
  const auto out = RunProgram(
      "mov.u32 %r1, 0;\n"
      "setp.eq.s32 %p1, %r0, 0;\n"
      "@%p1 st.shared.u32 [hearth_shared], %r1;\n"
      "bar.sync 0;\n"
      "atom.shared.add.u32 %r2, [hearth_shared], %r0;\n"
      "bar.sync 0;\n"
      "ld.shared.u32 %r3, [hearth_shared];\n"
      "st.global.u32 [%rd4], %r3;\n",
      {0}, 32);
  EXPECT_EQ(out, std::vector<uint32_t>(32, 31 * 32 / 2));
}

// Blocks of 64 threads leave a word each in `in`; whichever comes last adds all of them up. The
// counter is the word behind.
std::string LastBlock(const std::string& before, const std::string& atom,
                      const std::string& behind) {
  return "mov.u32 %r1, %ctaid.x;\n"
         "mul.wide.u32 %rd6, %r1, 4;\n"
         "add.s64 %rd7, %rd1, %rd6;\n"
         "setp.eq.s32 %p1, %r0, 33;\n"
         "@%p1 st.global.u32 [%rd7], %r1;\n" +
         before + "setp.eq.s32 %p2, %r0, 0;\n@%p2 " + atom +
         " %r2, [%rd1+12], 1;\n@%p2 st.shared.u32 [hearth_shared], %r2;\n" + behind +
         "ld.shared.u32 %r3, [hearth_shared];\n"
         "setp.eq.s32 %p3, %r3, 2;\n"
         "@!%p3 bra $end;\n"
         "ld.global.u32 %r4, [%rd1];\n"
         "ld.global.u32 %r5, [%rd1+4];\n"
         "ld.global.u32 %r6, [%rd1+8];\n"
         "add.s32 %r4, %r4, %r5;\n"
         "add.s32 %r4, %r4, %r6;\n"
         "st.global.u32 [%rd4], %r4;\n"
         "$end:\n";
}
std::vector<uint32_t> RunBlocks(const std::string& body) {
  DeviceMemory memory;
  const Pointers args{memory.Copy(std::vector<uint32_t>(4)), memory.Make<uint32_t>(64)};
  PtxMachine machine("test", Program(body));
  machine.Run("k", {3, 1, 1, 64, 1024}, &args, sizeof args, memory);
  const auto* out = static_cast<const uint32_t*>(args.out);
  return {out, out + 64};
}

TEST(PtxRunDeathTest, BlocksAreOrderedByArrivalsBetweenBarriers) {
  GTEST_FLAG_SET(death_test_style, "fast");
  constexpr const char *kBarrier = "bar.sync 0;\n", *kAtom = "atom.acq_rel.gpu.global.add.s32";
  EXPECT_EQ(RunBlocks(LastBlock(kBarrier, kAtom, kBarrier)), std::vector<uint32_t>(64, 3));
  const auto dies = [](const std::string& body, const char* why) {
    EXPECT_EXIT(RunBlocks(body), ::testing::ExitedWithCode(3), why);
  };
  dies(LastBlock("", kAtom, kBarrier), "another block's memory without order");
  dies(LastBlock(kBarrier, "atom.relaxed.gpu.global.add.s32", kBarrier),
       "another block's memory without order");
  dies(LastBlock(kBarrier, kAtom, ""), "race");
  dies("st.global.u32 [%rd4], %r0;\n", "another block's memory without order");
}

TEST(PtxRun, CopiesArriveWhenWaitedFor) {
  const std::string copy =
      "shl.b32 %r1, %r0, 4;\n"
      "mul.wide.u32 %rd6, %r0, 16;\n"
      "add.s64 %rd7, %rd1, %rd6;\n"
      "cp.async.cg.shared.global [%r1], [%rd7], 16;\n"
      "cp.async.commit_group;\n";
  const std::string read = "ld.shared.u32 %r2, [%r1+4];\nst.global.u32 [%rd4], %r2;\n";
  const auto in = Counting(128);
  const auto waited = RunProgram(copy + "cp.async.wait_group 0;\n" + read, in, 32);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(waited[i], in[4 * i + 1]);
  const auto early = RunProgram(copy + read + "cp.async.wait_group 0;\n", in, 32);
  EXPECT_EQ(early, std::vector<uint32_t>(32, 0xffffffff));
  const auto one_too_many =
      RunProgram(copy + "cp.async.wait_group 1;\n" + read + "cp.async.wait_group 0;\n", in, 32);
  EXPECT_EQ(one_too_many, std::vector<uint32_t>(32, 0xffffffff));
}

// Matrices by their rows and columns: the fragments of cuda/isa.h, written down once more.
template <int kRows, int kDepth>
void CheckMma(const std::string& load_a, const std::string& instruction) {
  int8_t a[kRows][kDepth], b[kDepth][8];
  uint32_t state = 12345;
  const auto next = [&state] {
    return static_cast<int8_t>((state = state * 1664525u + 1013904223u) >> 24);
  };
  for (auto& row : a) {
    for (int8_t& value : row) value = next();
  }
  for (auto& row : b) {
    for (int8_t& value : row) value = next();
  }
  // Words of a in the order of registers and lanes, then those of b.
  std::vector<uint32_t> in;
  const auto word = [](int8_t w, int8_t x, int8_t y, int8_t z) {
    return uint32_t{static_cast<uint8_t>(w)} | uint32_t{static_cast<uint8_t>(x)} << 8 |
           uint32_t{static_cast<uint8_t>(y)} << 16 | uint32_t{static_cast<uint8_t>(z)} << 24;
  };
  for (int half = 0; half < kDepth / 16; ++half) {
    for (int block = 0; block < kRows / 8; ++block) {
      for (int lane = 0; lane < 32; ++lane) {
        const int8_t* at = &a[block * 8 + lane / 4][half * 16 + lane % 4 * 4];
        in.push_back(word(at[0], at[1], at[2], at[3]));
      }
    }
  }
  for (int half = 0; half < kDepth / 16; ++half) {
    for (int lane = 0; lane < 32; ++lane) {
      const int k = half * 16 + lane % 4 * 4, n = lane / 4;
      in.push_back(word(b[k][n], b[k + 1][n], b[k + 2][n], b[k + 3][n]));
    }
  }
  const auto out = RunProgram(load_a + instruction, in, 32 * kRows / 4);
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < 8; ++column) {
      int32_t want = 1000;
      for (int k = 0; k < kDepth; ++k) want += a[row][k] * b[k][column];
      const int lane = row % 8 * 4 + column / 2, i = row / 8 * 2 + column % 2;
      EXPECT_EQ(static_cast<int32_t>(out[static_cast<size_t>(i * 32 + lane)]), want)
          << row << " " << column;
    }
  }
}

TEST(PtxRun, MultipliesTilesOf16By32) {
  CheckMma<16, 32>(
      "ld.global.u32 %a0, [%rd3];\nld.global.u32 %a1, [%rd3+128];\nld.global.u32 %a2, [%rd3+256];\n"
      "ld.global.u32 %a3, [%rd3+384];\nld.global.u32 %b0, [%rd3+512];\nld.global.u32 %b1, "
      "[%rd3+640];\n"
      "mov.u32 %c, 1000;\n",
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%d0,%d1,%d2,%d3}, {%a0,%a1,%a2,%a3}, "
      "{%b0,%b1}, "
      "{%c,%c,%c,%c};\n"
      "st.global.u32 [%rd4], %d0;\nst.global.u32 [%rd4+128], %d1;\nst.global.u32 [%rd4+256], %d2;\n"
      "st.global.u32 [%rd4+384], %d3;\n");
}

TEST(PtxRun, MultipliesTilesOf8By16) {
  CheckMma<8, 16>(
      "ld.global.u32 %a0, [%rd3];\nld.global.u32 %b0, [%rd3+128];\nmov.u32 %c, 1000;\n",
      "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%d0,%d1}, {%a0}, {%b0}, {%c,%c};\n"
      "st.global.u32 [%rd4], %d0;\nst.global.u32 [%rd4+128], %d1;\n");
}

// Small integers are exact halves, and so are their sums as floats: the fragments alone are tested.
template <int kDepth>
void CheckMmaHalf(const std::string& load, const std::string& instruction) {
  float a[16][kDepth], b[kDepth][8];
  uint32_t state = 54321;
  const auto next = [&state] {
    return static_cast<float>((state = state * 1664525u + 1013904223u) >> 28) - 7.0f;
  };
  for (auto& row : a) {
    for (float& value : row) value = next();
  }
  for (auto& row : b) {
    for (float& value : row) value = next();
  }
  const auto word = [](float low, float high) {
    return uint32_t{F16FromF32(low)} | uint32_t{F16FromF32(high)} << 16;
  };
  std::vector<uint32_t> in;
  for (int half = 0; half < kDepth / 8; ++half) {
    for (int block = 0; block < 2; ++block) {
      for (int lane = 0; lane < 32; ++lane) {
        const float* at = &a[block * 8 + lane / 4][half * 8 + lane % 4 * 2];
        in.push_back(word(at[0], at[1]));
      }
    }
  }
  for (int half = 0; half < kDepth / 8; ++half) {
    for (int lane = 0; lane < 32; ++lane) {
      const int k = half * 8 + lane % 4 * 2;
      in.push_back(word(b[k][lane / 4], b[k + 1][lane / 4]));
    }
  }
  const auto out =
      RunProgram(load + "mov.u32 %c, 0x447a0000;\n" + instruction +
                     "st.global.u32 [%rd4], %d0;\nst.global.u32 [%rd4+128], %d1;\n"
                     "st.global.u32 [%rd4+256], %d2;\nst.global.u32 [%rd4+384], %d3;\n",
                 in, 128);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float want = 1000;
      for (int k = 0; k < kDepth; ++k) want += a[row][k] * b[k][column];
      const int lane = row % 8 * 4 + column / 2, i = row / 8 * 2 + column % 2;
      EXPECT_EQ(std::bit_cast<float>(out[static_cast<size_t>(i * 32 + lane)]), want)
          << row << " " << column;
    }
  }
}

TEST(PtxRun, MultipliesTilesOfHalves) {
  CheckMmaHalf<16>(
      "ld.global.u32 %a0, [%rd3];\nld.global.u32 %a1, [%rd3+128];\nld.global.u32 %a2, [%rd3+256];\n"
      "ld.global.u32 %a3, [%rd3+384];\nld.global.u32 %b0, [%rd3+512];\nld.global.u32 %b1, "
      "[%rd3+640];\n",
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0,%d1,%d2,%d3}, {%a0,%a1,%a2,%a3}, "
      "{%b0,%b1}, {%c,%c,%c,%c};\n");
  CheckMmaHalf<8>(
      "ld.global.u32 %a0, [%rd3];\nld.global.u32 %a1, [%rd3+128];\nld.global.u32 %b0, "
      "[%rd3+256];\n",
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%d0,%d1,%d2,%d3}, {%a0,%a1}, {%b0}, "
      "{%c,%c,%c,%c};\n");
}

TEST(PtxRun, CountsSectorsAndWavefronts) {
  DeviceMemory memory;
  const Pointers args{memory.Make<uint32_t>(1024), memory.Make<uint32_t>(1024)};
  PtxMachine machine("test",
                     Program("ld.global.u32 %r1, [%rd3];\n"  // 128 bytes, 4 sectors
                             "mul.wide.u32 %rd6, %r0, 32;\n"
                             "add.s64 %rd7, %rd2, %rd6;\n"
                             "st.global.u32 [%rd7], %r1;\n"  // 128 bytes, 32 sectors
                             "shl.b32 %r2, %r0, 3;\n"
                             "st.shared.u32 [%r2], %r1;\n"  // two lanes a bank
                             "shl.b32 %r3, %r0, 4;\n"
                             "add.s32 %r3, %r3, 512;\n"
                             "st.shared.v4.u32 [%r3], {%r1,%r1,%r1,%r1};\n"));  // no conflict
  machine.Run("k", {1, 1, 1, 32, 1024}, &args, sizeof args, memory);
  const PtxCounters& c = machine.counters().at("k");
  EXPECT_EQ(c.load_bytes, 128);
  EXPECT_EQ(c.load_sectors, 4);
  EXPECT_EQ(c.store_bytes, 128);
  EXPECT_EQ(c.store_sectors, 32);
  EXPECT_EQ(c.wavefronts, 2 + 4);
  EXPECT_EQ(c.ideal_wavefronts, 1 + 4);
}

struct Mistake {
  const char *body, *why;
};
constexpr Mistake kMistakes[] = {
    {"ld.global.u32 %r1, [%rd3+4];\n", "outside of every allocation"},
    {"st.global.u32 [%rd4+4], %r0;\n", "outside of every allocation"},
    {"ld.global.u32 %r1, [%rd3+-4];\n", "outside of every allocation"},
    {"ld.global.u32 %r1, [%rd1+2];\n", "not aligned"},
    {"ld.shared.u32 %r1, [hearth_shared+1024];\n", "outside of shared memory"},
    {"ld.shared.u32 %r1, [hearth_shared+2];\n", "not aligned"},
    {"ld.param.u64 %rd9, [k_param_0+16];\n", "outside of parameters"},
    {"st.shared.u32 [hearth_shared], %r0;\n", "race"},
    {"setp.eq.s32 %p1, %r0, 0;\n@%p1 st.shared.u32 [hearth_shared], %r0;\nld.shared.u32 %r1, "
     "[hearth_shared];\n",
     "race"},
    {"st.global.u32 [%rd2], %r0;\n", "race in global"},
    {"st.global.u32 [%rd4], %r0;\nld.global.u32 %r1, [%rd2];\n", "race in global"},
    {"setp.eq.s32 %p1, %r0, 0;\n@%p1 bar.sync 0;\n", "not all lanes"},
    {"setp.eq.s32 %p1, %r0, 0;\n@%p1 bra $over;\nbar.sync 0;\n$over:\n", "not all lanes"},
    {"setp.lt.s32 %p1, %r0, 16;\n@%p1 shfl.sync.bfly.b32 %r1|%p2, %r0, 1, 31, -1;\n",
     "not all lanes"},
    {"shfl.sync.bfly.b32 %r1|%p2, %r0, 1, 31, 65535;\n", "less than a warp"},
    {"cp.async.cg.shared.global [hearth_shared], [%rd1], 16;\n", "race"},
    {"shl.b32 %r1, %r0, 4;\ncp.async.cg.shared.global [%r1], [%rd1], 16;\n", "copies under way"},
    {"shl.b32 %r1, %r0, 4;\ncp.async.cg.shared.global [%r1], [%rd1+4], 16;\n", "not aligned"},
    {"ex2.approx.f32 %f1, %f1;\n", "unknown instruction"},
    {"ld.local.u32 %r1, [%rd1];\n", "unknown kind of access"},
    {"mov.u32 %r1, something;\n", "unknown name"},
    {"bra $nowhere;\n", "no label"},
};

TEST(PtxRunDeathTest, RefusesWhatAKernelMustNotDo) {
  GTEST_FLAG_SET(death_test_style, "fast");
  for (const Mistake& mistake : kMistakes) {
    EXPECT_EXIT(RunProgram(mistake.body, std::vector<uint32_t>(32), 32),
                ::testing::ExitedWithCode(3), mistake.why)
        << mistake.body;
  }
}

}  // namespace
}  // namespace hearth::cuda
