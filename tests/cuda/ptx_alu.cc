// SPDX-License-Identifier: Apache-2.0
#include "ptx_alu.h"

#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "base/num.h"

namespace hearth::cuda {
namespace {

using u64 = uint64_t;
using Table = std::map<std::string, AluOp>;

template <class T>
T As(u64 bits) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<T>(bits);
  if constexpr (sizeof(T) == 4) return std::bit_cast<T>(static_cast<uint32_t>(bits));
  if constexpr (sizeof(T) == 2) return std::bit_cast<T>(static_cast<uint16_t>(bits));
  if constexpr (sizeof(T) == 1) return std::bit_cast<T>(static_cast<uint8_t>(bits));
}
template <class T>
u64 From(T value) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<u64>(value);
  if constexpr (sizeof(T) == 4) return std::bit_cast<uint32_t>(value);
  if constexpr (sizeof(T) == 2) return std::bit_cast<uint16_t>(value);
  if constexpr (sizeof(T) == 1) return std::bit_cast<uint8_t>(value);
}
// A NaN that an operation makes is always this one, whatever it was made from.
u64 FromFloat(float value) {
  return std::isnan(value) ? 0x7fffffffu : std::bit_cast<uint32_t>(value);
}
float F(u64 bits) { return As<float>(bits); }

template <class T>
void AddIntegers(Table& t, const std::string& type) {
  using S = std::make_signed_t<T>;
  using U = std::make_unsigned_t<T>;
  constexpr bool kIsSigned = std::is_signed_v<T>;
  constexpr int kBits = 8 * sizeof(T);
  t["add." + type] = {[](u64 a, u64 b, u64) { return From(static_cast<U>(a + b)); }, 2};
  t["sub." + type] = {[](u64 a, u64 b, u64) { return From(static_cast<U>(a - b)); }, 2};
  t["mul.lo." + type] = {[](u64 a, u64 b, u64) { return From(static_cast<U>(a * b)); }, 2};
  t["mad.lo." + type] = {[](u64 a, u64 b, u64 c) { return From(static_cast<U>(a * b + c)); }, 3};
  t["neg." + type] = {[](u64 a, u64, u64) { return From(static_cast<U>(0 - a)); }, 1};
  t["min." + type] = {
      [](u64 a, u64 b, u64) { return From(As<T>(a) < As<T>(b) ? As<T>(a) : As<T>(b)); }, 2};
  t["max." + type] = {
      [](u64 a, u64 b, u64) { return From(As<T>(a) > As<T>(b) ? As<T>(a) : As<T>(b)); }, 2};
  if constexpr (kBits == 32) {
    using Wide = std::conditional_t<kIsSigned, int64_t, uint64_t>;
    t["mul.wide." + type] = {
        [](u64 a, u64 b, u64) { return From(Wide{As<T>(a)} * Wide{As<T>(b)}); }, 2};
    t["mul.hi." + type] = {
        [](u64 a, u64 b, u64) {
          return u64{static_cast<uint32_t>((Wide{As<T>(a)} * Wide{As<T>(b)}) >> 32)};
        },
        2};
  }
  if constexpr (kBits == 16) {
    using Wide = std::conditional_t<kIsSigned, int32_t, uint32_t>;
    t["mul.wide." + type] = {
        [](u64 a, u64 b, u64) { return From(Wide{As<T>(a)} * Wide{As<T>(b)}); }, 2};
  }
  // Division by zero gives some value; the smallest number by -1 does not trap.
  t["div." + type] = {[](u64 a, u64 b, u64) {
                        if (As<T>(b) == 0) return From(static_cast<U>(~U{0}));
                        if (kIsSigned && As<S>(b) == -1) return From(static_cast<U>(0 - a));
                        return From(static_cast<T>(As<T>(a) / As<T>(b)));
                      },
                      2};
  t["rem." + type] = {[](u64 a, u64 b, u64) {
                        if (As<T>(b) == 0) return From(As<T>(a));
                        if (kIsSigned && As<S>(b) == -1) return From(T{0});
                        return From(static_cast<T>(As<T>(a) % As<T>(b)));
                      },
                      2};
  // Shifts by the width or more: nothing is left but the sign.
  t["shr." + type] = {[](u64 a, u64 b, u64) {
                        const uint32_t by = As<uint32_t>(b);
                        if (by < kBits) return From(static_cast<T>(As<T>(a) >> by));
                        return From(static_cast<T>(kIsSigned && As<S>(a) < 0 ? -1 : 0));
                      },
                      2};
}

template <class U>
void AddBits(Table& t, const std::string& type) {
  constexpr int kBits = 8 * sizeof(U);
  t["and." + type] = {[](u64 a, u64 b, u64) { return From(static_cast<U>(a & b)); }, 2};
  t["or." + type] = {[](u64 a, u64 b, u64) { return From(static_cast<U>(a | b)); }, 2};
  t["xor." + type] = {[](u64 a, u64 b, u64) { return From(static_cast<U>(a ^ b)); }, 2};
  t["not." + type] = {[](u64 a, u64, u64) { return From(static_cast<U>(~a)); }, 1};
  t["shl." + type] = {[](u64 a, u64 b, u64) {
                        const uint32_t by = As<uint32_t>(b);
                        return by < kBits ? From(static_cast<U>(a << by)) : u64{0};
                      },
                      2};
}

template <class U>
void AddMoves(Table& t, std::initializer_list<const char*> types) {
  for (const std::string type : types) {
    t["mov." + type] = {[](u64 a, u64, u64) { return From(static_cast<U>(a)); }, 1};
    t["selp." + type] = {
        [](u64 a, u64 b, u64 p) { return From(static_cast<U>((p & 1) != 0 ? a : b)); }, 3};
  }
}

template <class T>
void AddComparisons(Table& t, const std::string& type) {
  t["setp.eq." + type] = {[](u64 a, u64 b, u64) { return u64{As<T>(a) == As<T>(b)}; }, 2};
  t["setp.ne." + type] = {[](u64 a, u64 b, u64) {
                            if constexpr (std::is_floating_point_v<T>)
                              return u64{As<T>(a) < As<T>(b) || As<T>(a) > As<T>(b)};
                            return u64{As<T>(a) != As<T>(b)};
                          },
                          2};
  t["setp.lt." + type] = {[](u64 a, u64 b, u64) { return u64{As<T>(a) < As<T>(b)}; }, 2};
  t["setp.le." + type] = {[](u64 a, u64 b, u64) { return u64{As<T>(a) <= As<T>(b)}; }, 2};
  t["setp.gt." + type] = {[](u64 a, u64 b, u64) { return u64{As<T>(a) > As<T>(b)}; }, 2};
  t["setp.ge." + type] = {[](u64 a, u64 b, u64) { return u64{As<T>(a) >= As<T>(b)}; }, 2};
}

float Extreme(float a, float b, bool largest) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) == largest ? b : a;  // -0 is less than +0
  return (a > b) == largest ? a : b;
}

void AddFloats(Table& t) {
  t["add.rn.f32"] = {[](u64 a, u64 b, u64) { return FromFloat(F(a) + F(b)); }, 2};
  t["sub.rn.f32"] = {[](u64 a, u64 b, u64) { return FromFloat(F(a) - F(b)); }, 2};
  t["mul.rn.f32"] = {[](u64 a, u64 b, u64) { return FromFloat(F(a) * F(b)); }, 2};
  t["div.rn.f32"] = {[](u64 a, u64 b, u64) { return FromFloat(F(a) / F(b)); }, 2};
  t["rcp.rn.f32"] = {[](u64 a, u64, u64) { return FromFloat(1.0f / F(a)); }, 1};
  t["sqrt.rn.f32"] = {[](u64 a, u64, u64) { return FromFloat(std::sqrt(F(a))); }, 1};
  t["fma.rn.f32"] = {[](u64 a, u64 b, u64 c) { return FromFloat(std::fma(F(a), F(b), F(c))); }, 3};
  t["neg.f32"] = {[](u64 a, u64, u64) { return (a & 0xffffffffu) ^ 0x80000000u; }, 1};
  t["abs.f32"] = {[](u64 a, u64, u64) { return a & 0x7fffffffu; }, 1};
  t["max.f32"] = {[](u64 a, u64 b, u64) { return FromFloat(Extreme(F(a), F(b), true)); }, 2};
  t["min.f32"] = {[](u64 a, u64 b, u64) { return FromFloat(Extreme(F(a), F(b), false)); }, 2};
  AddComparisons<float>(t, "f32");
  // Unordered forms are true when an operand is NaN.
  t["setp.equ.f32"] = {[](u64 a, u64 b, u64) { return u64{!(F(a) < F(b) || F(a) > F(b))}; }, 2};
  t["setp.neu.f32"] = {[](u64 a, u64 b, u64) { return u64{!(F(a) == F(b))}; }, 2};
  t["setp.ltu.f32"] = {[](u64 a, u64 b, u64) { return u64{!(F(a) >= F(b))}; }, 2};
  t["setp.leu.f32"] = {[](u64 a, u64 b, u64) { return u64{!(F(a) > F(b))}; }, 2};
  t["setp.gtu.f32"] = {[](u64 a, u64 b, u64) { return u64{!(F(a) <= F(b))}; }, 2};
  t["setp.geu.f32"] = {[](u64 a, u64 b, u64) { return u64{!(F(a) < F(b))}; }, 2};
  t["setp.nan.f32"] = {[](u64 a, u64 b, u64) { return u64{std::isnan(F(a)) || std::isnan(F(b))}; },
                       2};
  t["setp.num.f32"] = {
      [](u64 a, u64 b, u64) { return u64{!std::isnan(F(a)) && !std::isnan(F(b))}; }, 2};
}

// From one integer type to another: the source's width decides what is extended, and how.
template <class To, class Source>
void AddConversion(Table& t, const std::string& to, const std::string& from) {
  t["cvt." + to + "." + from] = {
      [](u64 a, u64, u64) { return From(static_cast<To>(As<Source>(a))); }, 1};
}
template <class To>
void AddConversionsTo(Table& t, const std::string& to) {
  AddConversion<To, int8_t>(t, to, "s8");
  AddConversion<To, uint8_t>(t, to, "u8");
  AddConversion<To, int16_t>(t, to, "s16");
  AddConversion<To, uint16_t>(t, to, "u16");
  AddConversion<To, int32_t>(t, to, "s32");
  AddConversion<To, uint32_t>(t, to, "u32");
  AddConversion<To, int64_t>(t, to, "s64");
  AddConversion<To, uint64_t>(t, to, "u64");
}

// Towards zero; what does not fit becomes the nearest that does, NaN becomes 0.
u64 TruncateToInt(u64 a, u64, u64) {
  const float value = F(a);
  if (std::isnan(value)) return 0;
  if (value >= 0x1p31f) return 0x7fffffffu;
  if (value <= -0x1p31f) return 0x80000000u;
  return From(static_cast<int32_t>(value));
}

void AddConversions(Table& t) {
  AddConversionsTo<int16_t>(t, "s16");
  AddConversionsTo<uint16_t>(t, "u16");
  AddConversionsTo<int32_t>(t, "s32");
  AddConversionsTo<uint32_t>(t, "u32");
  AddConversionsTo<int64_t>(t, "s64");
  AddConversionsTo<uint64_t>(t, "u64");
  // Registers have at least 16 bits: what is narrower is extended to them.
  t["cvt.s8.s32"] = {[](u64 a, u64, u64) { return From(int64_t{As<int8_t>(a)}); }, 1};
  t["cvt.rn.f32.s32"] = {
      [](u64 a, u64, u64) { return FromFloat(static_cast<float>(As<int32_t>(a))); }, 1};
  t["cvt.rn.f32.u32"] = {
      [](u64 a, u64, u64) { return FromFloat(static_cast<float>(As<uint32_t>(a))); }, 1};
  t["cvt.rn.f32.s16"] = {
      [](u64 a, u64, u64) { return FromFloat(static_cast<float>(As<int16_t>(a))); }, 1};
  t["cvt.rn.f32.u16"] = {
      [](u64 a, u64, u64) { return FromFloat(static_cast<float>(As<uint16_t>(a))); }, 1};
  t["cvt.rzi.s32.f32"] = {TruncateToInt, 1};
  t["cvt.rn.f16.f32"] = {[](u64 a, u64, u64) { return u64{F16FromF32(F(a))}; }, 1};
  t["cvt.f32.f16"] = {[](u64 a, u64, u64) { return FromFloat(F32FromF16(As<uint16_t>(a))); }, 1};
}

u64 PermuteBytes(u64 a, u64 b, u64 selector) {
  const u64 both = (b & 0xffffffffu) << 32 | (a & 0xffffffffu);
  u64 out = 0;
  for (int i = 0; i < 4; ++i) {
    const u64 nibble = selector >> (4 * i) & 15;
    u64 byte = both >> (8 * (nibble & 7)) & 255;
    if (nibble >= 8) byte = byte >= 128 ? 255 : 0;
    out |= byte << (8 * i);
  }
  return out;
}

Table MakeTable() {
  Table t;
  AddIntegers<int16_t>(t, "s16");
  AddIntegers<uint16_t>(t, "u16");
  AddIntegers<int32_t>(t, "s32");
  AddIntegers<uint32_t>(t, "u32");
  AddIntegers<int64_t>(t, "s64");
  AddIntegers<uint64_t>(t, "u64");
  AddBits<uint16_t>(t, "b16");
  AddBits<uint32_t>(t, "b32");
  AddBits<uint64_t>(t, "b64");
  AddMoves<uint16_t>(t, {"b16", "u16", "s16"});
  AddMoves<uint32_t>(t, {"b32", "u32", "s32", "f32"});
  AddMoves<uint64_t>(t, {"b64", "u64", "s64"});
  AddComparisons<int16_t>(t, "s16");
  AddComparisons<uint16_t>(t, "u16");
  AddComparisons<uint16_t>(t, "b16");
  AddComparisons<int32_t>(t, "s32");
  AddComparisons<uint32_t>(t, "u32");
  AddComparisons<uint32_t>(t, "b32");
  AddComparisons<int64_t>(t, "s64");
  AddComparisons<uint64_t>(t, "u64");
  AddComparisons<uint64_t>(t, "b64");
  AddFloats(t);
  AddConversions(t);
  t["mul.hi.u64"] = {[](u64 a, u64 b, u64) {
                       __extension__ using Wide = unsigned __int128;
                       return static_cast<u64>((Wide{a} * b) >> 64);
                     },
                     2};
  t["prmt.b32"] = {PermuteBytes, 3};
  t["and.pred"] = {[](u64 a, u64 b, u64) { return a & b & 1; }, 2};
  t["or.pred"] = {[](u64 a, u64 b, u64) { return (a | b) & 1; }, 2};
  t["xor.pred"] = {[](u64 a, u64 b, u64) { return (a ^ b) & 1; }, 2};
  t["not.pred"] = {[](u64 a, u64, u64) { return ~a & 1; }, 1};
  t["mov.pred"] = {[](u64 a, u64, u64) { return a & 1; }, 1};
  // The upper half of (b, a) shifted left by c modulo 32.
  t["shf.l.wrap.b32"] = {[](u64 a, u64 b, u64 c) {
                           const u64 both = (b & 0xffffffffu) << 32 | (a & 0xffffffffu);
                           return both << (c & 31) >> 32 & 0xffffffffu;
                         },
                         3};
  // Global addresses are generic ones here.
  t["cvta.to.global.u64"] = {[](u64 a, u64, u64) { return a; }, 1};
  return t;
}

}  // namespace

AluOp FindAlu(const std::string& opcode) {
  static const Table kTable = MakeTable();
  const auto found = kTable.find(opcode);
  return found == kTable.end() ? AluOp{} : found->second;
}

}  // namespace hearth::cuda
