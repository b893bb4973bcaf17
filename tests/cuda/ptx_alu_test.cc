// SPDX-License-Identifier: Apache-2.0
// Every computing instruction of the interpreter on operands whose results the PTX ISA manual
// fixes.
#include "ptx_alu.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "ptx_module.h"

namespace hearth::cuda {
namespace {

struct Row {
  const char* opcode;
  uint64_t a, b, c, want;
};

constexpr uint64_t kOne = 0x3f800000, kTwo = 0x40000000, kMinusOne = 0xbf800000;
constexpr uint64_t kMinusZero = 0x80000000, kInf = 0x7f800000, kNan = 0x7fc00000;
constexpr uint64_t kMadeNan = 0x7fffffff;  // the NaN that instructions make
constexpr uint64_t kTiny = 1;              // the smallest subnormal
constexpr uint64_t kHalf = 0x3f000000;

constexpr Row kIntegers[] = {
    {"add.s32", 0xffffffff, 2, 0, 1},
    {"add.s32", 0x1ffffffff, 2, 0, 1},  // what lies above 32 bits is not read
    {"add.s64", 0xffffffffffffffff, 2, 0, 1},
    {"add.u64", 0xffffffff, 1, 0, 0x100000000},
    {"sub.s32", 1, 2, 0, 0xffffffff},
    {"mul.lo.s32", 0x10000, 0x10001, 0, 0x10000},
    {"mul.lo.s64", 0x100000000, 3, 0, 0x300000000},
    {"mul.hi.s32", 0x80000000, 2, 0, 0xffffffff},
    {"mul.hi.u32", 0x80000000, 2, 0, 1},
    {"mul.hi.u64", 0x8000000000000000, 6, 0, 3},
    {"mul.hi.u64", 0xffffffffffffffff, 0xffffffffffffffff, 0, 0xfffffffffffffffe},
    {"add.s16", 0xffff, 2, 0, 1},
    {"add.s16", 0x17fff, 1, 0, 0x8000},  // what lies above 16 bits is not read
    {"mul.wide.s32", 0xffffffff, 3, 0, 0xfffffffffffffffd},
    {"mul.wide.u32", 0xffffffff, 3, 0, 0x2fffffffd},
    {"mul.wide.s16", 0xffff, 3, 0, 0xfffffffd},
    {"mul.wide.u16", 0xffff, 3, 0, 0x2fffd},
    {"mad.lo.s32", 3, 0xffffffff, 5, 2},
    {"mad.lo.s64", 3, 0xffffffffffffffff, 5, 2},
    {"div.s32", 0xfffffff9, 2, 0, 0xfffffffd},  // towards zero
    {"div.u32", 0xfffffff9, 2, 0, 0x7ffffffc},
    {"div.s32", 0x80000000, 0xffffffff, 0, 0x80000000},
    {"rem.s32", 0xfffffff9, 2, 0, 0xffffffff},
    {"neg.s32", 5, 0, 0, 0xfffffffb},
    {"min.s32", 0xffffffff, 1, 0, 0xffffffff},
    {"max.s32", 0xffffffff, 1, 0, 1},
    {"max.u32", 0xffffffff, 1, 0, 0xffffffff},
    {"shl.b32", 3, 31, 0, 0x80000000},
    {"shl.b32", 3, 32, 0, 0},  // more than the width: nothing is left
    {"shl.b64", 3, 63, 0, 0x8000000000000000},
    {"shr.u32", 0x80000000, 31, 0, 1},
    {"shr.u32", 0x80000000, 32, 0, 0},
    {"shr.s32", 0x80000000, 31, 0, 0xffffffff},
    {"shr.s32", 0x80000000, 99, 0, 0xffffffff},
    {"shr.s64", 0x8000000000000000, 63, 0, 0xffffffffffffffff},
    {"shr.u64", 0x8000000000000000, 63, 0, 1},
    {"shr.u16", 0xf0f0, 12, 0, 15},
    {"shr.s16", 0xf0f0, 12, 0, 0xffff},
    {"shr.s16", 0x70f0, 12, 0, 7},
    {"shl.b16", 0xf0f1, 8, 0, 0xf100},
    {"shl.b16", 1, 16, 0, 0},
    {"and.b32", 0xf0f0, 0xff00, 0, 0xf000},
    {"and.b64", 0xf000000000, 0xff00000000, 0, 0xf000000000},
    {"and.b16", 0x1f0f0, 0x1ff00, 0, 0xf000},
    {"or.b32", 0xf0f0, 0xff00, 0, 0xfff0},
    {"or.b64", 1, 0xff00000000, 0, 0xff00000001},
    {"xor.b32", 0xf0f0, 0xff00, 0, 0x0ff0},
    {"not.b32", 0xf0f0, 0, 0, 0xffff0f0f},
    {"selp.b32", 7, 8, 1, 7},
    {"selp.b32", 7, 8, 0, 8},
    {"selp.b64", 0x700000001, 8, 1, 0x700000001},
    {"selp.b64", 7, 0x800000001, 0, 0x800000001},
    {"selp.u16", 0x10007, 8, 1, 7},
    {"selp.u16", 7, 8, 0, 8},
    {"selp.b16", 7, 8, 1, 7},
    {"selp.b16", 7, 8, 0, 8},
    {"selp.u32", 7, 8, 1, 7},
    {"selp.f32", kOne, kTwo, 0, kTwo},
    {"mov.b32", 0x123456789, 0, 0, 0x23456789},
    {"mov.u32", 9, 0, 0, 9},
    {"mov.f32", kOne, 0, 0, kOne},
    {"mov.b64", 0x123456789, 0, 0, 0x123456789},
    {"mov.u64", 0x123456789, 0, 0, 0x123456789},
    {"mov.b16", 0x12345, 0, 0, 0x2345},
    {"cvta.to.global.u64", 0x123456789a, 0, 0, 0x123456789a},
    // Byte i by nibble i; with the upper bit its sign, eight times.
    {"prmt.b32", 0x44332211, 0x88776655, 0x5140, 0x66225511},
    {"prmt.b32", 0x44332211, 0x88776655, 0x7362, 0x88447733},
    {"prmt.b32", 0x80007f00, 0, 0xba98, 0xff000000},
    {"shf.l.wrap.b32", 0x80000001, 0x40000000, 1, 0x80000001},
    {"shf.l.wrap.b32", 0x80000001, 0x40000000, 33, 0x80000001},
    {"max.s64", 0xffffffffffffffff, 3, 0, 3},
    {"max.s64", 0x100000000, 1, 0, 0x100000000},
    {"sub.s64", 0x100000000, 1, 0, 0xffffffff},
    {"sub.s64", 0, 1, 0, 0xffffffffffffffff},
    {"not.b64", 0x00ff00ff00ff00ff, 0, 0, 0xff00ff00ff00ff00},
};

constexpr Row kPredicates[] = {
    {"setp.eq.s32", 5, 0x100000005, 0, 1},
    {"setp.eq.b32", 5, 6, 0, 0},
    {"setp.eq.s64", 5, 0x100000005, 0, 0},
    {"setp.eq.b64", 5, 5, 0, 1},
    {"setp.ne.s32", 5, 6, 0, 1},
    {"setp.ne.b32", 5, 5, 0, 0},
    {"setp.ne.b64", 5, 0x100000005, 0, 1},
    {"setp.lt.s32", 0xffffffff, 0, 0, 1},
    {"setp.lt.u32", 0xffffffff, 0, 0, 0},
    {"setp.le.s32", 4, 4, 0, 1},
    {"setp.le.u32", 5, 4, 0, 0},
    {"setp.gt.s32", 0, 0xffffffff, 0, 1},
    {"setp.gt.u32", 0, 0xffffffff, 0, 0},
    {"setp.eq.s16", 0x1fffe, 0x2fffe, 0, 1},
    {"setp.eq.s16", 0xfffe, 0x7ffe, 0, 0},
    {"setp.gt.u16", 0x10005, 0x20004, 0, 1},
    {"setp.gt.u16", 4, 0xffff, 0, 0},
    {"setp.ge.s32", 4, 4, 0, 1},
    {"setp.ge.u32", 0xffffffff, 1, 0, 1},
    {"setp.ge.u32", 7, 7, 0, 1},
    {"setp.ge.u32", 1, 0xffffffff, 0, 0},
    {"setp.ge.s64", 0xffffffffffffffff, 0, 0, 0},
    {"setp.ge.s64", 5, 5, 0, 1},
    {"setp.lt.s64", 0xffffffffffffffff, 0, 0, 1},
    {"setp.lt.s64", 5, 5, 0, 0},
    {"setp.lt.u64", 0xffffffffffffffff, 0, 0, 0},
    {"setp.lt.u64", 0x100000000, 0x100000001, 0, 1},
    {"setp.gt.u64", 0xffffffffffffffff, 0, 0, 1},
    {"setp.gt.u64", 9, 9, 0, 0},
    {"setp.eq.f32", 0, kMinusZero, 0, 1},
    {"setp.eq.f32", kNan, kNan, 0, 0},
    {"setp.ne.f32", kNan, kOne, 0, 0},  // ordered: false for NaN
    {"setp.neu.f32", kNan, kOne, 0, 1},
    {"setp.neu.f32", kOne, kOne, 0, 0},
    {"setp.equ.f32", kNan, kOne, 0, 1},
    {"setp.lt.f32", kMinusOne, kOne, 0, 1},
    {"setp.lt.f32", kNan, kOne, 0, 0},
    {"setp.ltu.f32", kNan, kOne, 0, 1},
    {"setp.ltu.f32", kTwo, kOne, 0, 0},
    {"setp.le.f32", kOne, kOne, 0, 1},
    {"setp.le.f32", kOne, kNan, 0, 0},
    {"setp.leu.f32", kOne, kNan, 0, 1},
    {"setp.gt.f32", kInf, kOne, 0, 1},
    {"setp.gt.f32", kNan, kOne, 0, 0},
    {"setp.gtu.f32", kNan, kOne, 0, 1},
    {"setp.ge.f32", kOne, kOne, 0, 1},
    {"setp.geu.f32", kNan, kOne, 0, 1},
    {"setp.geu.f32", kMinusOne, kOne, 0, 0},
    {"setp.nan.f32", kNan, kOne, 0, 1},
    {"setp.nan.f32", kTwo, kOne, 0, 0},
    {"setp.num.f32", kTwo, kOne, 0, 1},
    {"setp.num.f32", kTwo, kNan, 0, 0},
    {"and.pred", 1, 0, 0, 0},
    {"and.pred", 1, 1, 0, 1},
    {"or.pred", 1, 0, 0, 1},
    {"or.pred", 0, 0, 0, 0},
    {"xor.pred", 1, 1, 0, 0},
    {"not.pred", 1, 0, 0, 0},
    {"mov.pred", 1, 0, 0, 1},
};

constexpr Row kFloats[] = {
    {"add.rn.f32", kOne, kOne, 0, kTwo},
    {"add.rn.f32", kTiny, kTiny, 0, 2},         // subnormals are kept
    {"add.rn.f32", kOne, 0x33800000, 0, kOne},  // 1 + 2^-24: a tie, to even
    {"add.rn.f32", kInf, 0xff800000, 0, kMadeNan},
    {"add.rn.f32", kMinusZero, 0, 0, 0},
    {"sub.rn.f32", kOne, kOne, 0, 0},
    {"mul.rn.f32", kTiny, kTwo, 0, 2},
    {"mul.rn.f32", kTiny, kHalf, 0, 0},  // a tie between 0 and the smallest, to even
    {"mul.rn.f32", kNan | 0x80000123, kOne, 0, kMadeNan},
    // (1 + 2^-12)^2 - 1 - 2^-11: the 2^-24 is there only when nothing is rounded in between.
    {"fma.rn.f32", 0x3f800800, 0x3f800800, 0xbf801000, 0x33800000},
    {"div.rn.f32", kOne, 0x40400000, 0, 0x3eaaaaab},
    {"div.rn.f32", kOne, kMinusZero, 0, 0xff800000},
    {"div.rn.f32", 0, 0, 0, kMadeNan},
    {"rcp.rn.f32", 0x40400000, 0, 0, 0x3eaaaaab},
    {"rcp.rn.f32", 0, 0, 0, kInf},
    {"sqrt.rn.f32", kTwo, 0, 0, 0x3fb504f3},
    {"sqrt.rn.f32", kMinusZero, 0, 0, kMinusZero},
    {"sqrt.rn.f32", kMinusOne, 0, 0, kMadeNan},
    {"neg.f32", kOne, 0, 0, kMinusOne},
    {"abs.f32", kMinusOne, 0, 0, kOne},
    {"max.f32", kOne, kNan, 0, kOne},  // the number wins over NaN
    {"max.f32", kNan, kNan, 0, kMadeNan},
    {"max.f32", kMinusZero, 0, 0, 0},
    {"max.f32", 0, kMinusZero, 0, 0},
    {"max.f32", kOne, kTwo, 0, kTwo},
    {"min.f32", 0, kMinusZero, 0, kMinusZero},
    {"min.f32", kOne, kTwo, 0, kOne},
    {"cvt.rn.f32.s32", 0xffffffff, 0, 0, kMinusOne},
    {"cvt.rn.f32.s32", 0x01000001, 0, 0, 0x4b800000},  // 2^24 + 1: a tie, to even
    {"cvt.rn.f32.u32", 0xffffffff, 0, 0, 0x4f800000},
    {"cvt.rn.f32.s16", 0x5ffff, 0, 0, kMinusOne},
    {"cvt.rn.f32.u16", 0xffff, 0, 0, 0x477fff00},
    {"cvt.rzi.s32.f32", 0xbfffffff, 0, 0, 0xffffffff},  // -1.99... to -1
    {"cvt.rzi.s32.f32", 0x4f800000, 0, 0, 0x7fffffff},  // too large: the largest
    {"cvt.rzi.s32.f32", 0xcf800000, 0, 0, 0x80000000},
    {"cvt.rzi.s32.f32", kNan, 0, 0, 0},
    {"cvt.rn.f16.f32", kOne, 0, 0, 0x3c00},
    {"cvt.rn.f16.f32", 0x3f801000, 0, 0, 0x3c00},  // halfway: to even
    {"cvt.rn.f16.f32", 0x3f803000, 0, 0, 0x3c02},
    {"cvt.rn.f16.f32", 0x477ff000, 0, 0, 0x7c00},  // too large
    {"cvt.rn.f16.f32", 0x33800000, 0, 0, 0x0001},  // the smallest subnormal half
    {"cvt.f32.f16", 0x3c00, 0, 0, kOne},
    {"cvt.f32.f16", 0x0001, 0, 0, 0x33800000},  // the smallest subnormal half
    {"cvt.f32.f16", 0xfc00, 0, 0, 0xff800000},
    {"cvt.s64.s32", 0x180000000, 0, 0, 0xffffffff80000000},
    {"cvt.u64.u32", 0x180000000, 0, 0, 0x80000000},
    {"cvt.u32.u64", 0x180000001, 0, 0, 0x80000001},
    {"cvt.s32.s8", 0x1ff, 0, 0, 0xffffffff},
    {"cvt.s32.s16", 0x18000, 0, 0, 0xffff8000},
    {"cvt.s16.s8", 0x80, 0, 0, 0xff80},
    {"cvt.s8.s32", 0x17f, 0, 0, 0x7f},
    {"cvt.s8.s32", 0x180, 0, 0, 0xffffffffffffff80},  // its sign fills the register
    {"cvt.u16.u32", 0x12345, 0, 0, 0x2345},
    {"cvt.u32.u16", 0x12345, 0, 0, 0x2345},
    {"cvt.u32.u8", 0x1ff, 0, 0, 0xff},
};

template <size_t kCount>
void CheckRows(const Row (&rows)[kCount], std::set<std::string>& tested) {
  for (const Row& row : rows) {
    const AluOp op = FindAlu(row.opcode);
    ASSERT_NE(op.function, nullptr) << row.opcode;
    EXPECT_EQ(op.function(row.a, row.b, row.c), row.want)
        << row.opcode << std::hex << " of " << row.a << ", " << row.b << ", " << row.c;
    tested.insert(row.opcode);
  }
}

std::set<std::string> TestedOpcodes() {
  std::set<std::string> tested;
  CheckRows(kIntegers, tested);
  CheckRows(kPredicates, tested);
  CheckRows(kFloats, tested);
  return tested;
}

TEST(PtxAlu, FollowsTheManual) { EXPECT_GT(TestedOpcodes().size(), 90u); }

// Approximate and flushing forms must not pass for exact ones.
TEST(PtxAlu, KnowsNoApproximations) {
  for (const char* opcode : {"ex2.approx.f32", "ex2.approx.ftz.f32", "add.ftz.f32", "add.f32",
                             "mul.f32", "fma.rn.ftz.f32", "div.approx.f32", "div.full.f32",
                             "sqrt.approx.f32", "rcp.approx.ftz.f32", "mad.f32"}) {
    EXPECT_EQ(FindAlu(opcode).function, nullptr) << opcode;
  }
}

// No computing instruction of the kernels is without a row above.
TEST(PtxAlu, EveryInstructionOfTheKernelsIsTested) {
  const std::set<std::string> tested = TestedOpcodes();
  for (const char* arch : {"75", "80", "89", "120"}) {
    std::ifstream file(std::string(HEARTH_PTX_DIR) + "/sm_" + arch + ".ptx");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.empty()) GTEST_SKIP() << "SKIPPED LOUDLY: no PTX, nvcc is missing (./dev setup cuda)";
    const PtxModule module(text);
    for (const auto& [name, kernel] : module.kernels()) {
      for (const PtxInstruction& instruction : kernel.code) {
        if (instruction.kind != PtxKind::kAlu) continue;
        EXPECT_TRUE(tested.count(instruction.opcode) > 0)
            << "sm_" << arch << " " << name << ": " << instruction.opcode;
      }
    }
  }
}

}  // namespace
}  // namespace hearth::cuda
