// SPDX-License-Identifier: Apache-2.0
// The PTX instructions that only compute: from up to three operands to one result. Written from the
// PTX ISA manual; ptx_alu_test.cc has a row of operands and results for each.
#pragma once
#include <cstdint>
#include <string>
namespace hearth::cuda {

// Operands are bit patterns in the low bits; what lies above an operand's width is not looked at.
// The result's upper bits are zero. Predicates are 0 or 1.
using AluFunction = uint64_t (*)(uint64_t a, uint64_t b, uint64_t c);

struct AluOp {
  AluFunction function = nullptr;
  int num_operands = 0;
};

// Null function for an opcode that is not known. Opcodes are whole: "add.s32", "setp.lt.f32".
AluOp FindAlu(const std::string& opcode);

}  // namespace hearth::cuda
