// SPDX-License-Identifier: Apache-2.0
// Reading panels of Q8 and of the formats with a factor per block of 32, for tiles. Included after
// tile.inl, panels.h and panels_blocks.h, inside an unnamed namespace.

// Four columns a row, unsigned bytes, to 16 bits: columns 0 and 1, then columns 2 and 3, each less
// `offset`.
struct WideLine {
  Vec first, second;
};
inline WideLine Widen(Vec bytes, Vec offset) {
  const Vec low = Quarters(_mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1));
  const Vec high =
      Quarters(_mm_setr_epi8(2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1));
  return {SubPairs(LookUp(bytes, low), offset), SubPairs(LookUp(bytes, high), offset)};
}

// Line `line` of block `block` of a unit, for a vector's rows: codes plus the format's offset.
template <PackKind kKind>
[[gnu::always_inline]] inline Vec BlockLine(const uint8_t* unit, int line, int block, int row) {
  constexpr BlockTraits kTraits = BlockTraitsOf(kKind);
  const Vec raw = LoadVec(unit + CodesAt(kTraits) + line * 64 + row * 4);
  const Vec code = And(block == 0 ? raw : Right<4>(raw), Spread(0x0f0f0f0f));
  if constexpr (kTraits.has_table) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kIq4Codes));
    return LookUp(Quarters(_mm_add_epi8(values, _mm_set1_epi8(kTraits.offset))), code);
  }
  if constexpr (kTraits.has_fifth) {
    const Vec bits = LoadVec(unit + FifthAt(kTraits) + line / 4 * 64 + row * 4);
    const Vec bit = Spread(0x01010101 << (4 * block + line % 4));
    return Or(code, And(HasBit(bits, bit), Spread(0x10101010)));
  }
  return code;
}

template <PackKind kKind>
constexpr BlockTraits kTraitsOf =
    kKind == PackKind::kQ8 ? BlockTraits{false, false, false, 128} : BlockTraitsOf(kKind);
// Line `line` of the block, for a vector's rows; of Q8, too.
template <PackKind kKind>
[[gnu::always_inline]] inline Vec CodesLine(const uint8_t* at, int line, int block, int row) {
  if constexpr (kKind == PackKind::kQ8) return LoadVec(at + (block * 8 + line) * 64 + row * 4);
  return BlockLine<kKind>(at, line, block, row);
}
// The factors of block b, whose codes lie at `at`.
template <PackKind kKind>
inline VecF FactorsAt(const uint8_t* panel, const uint8_t* at, int b, int row) {
  if constexpr (kKind == PackKind::kQ8) return Halves(Q8Scales(panel) + b * kPanelRows + row);
  return Halves(FactorsOf(at) + b % 2 * kPanelRows + row);
}
// From a block to the next but one, and where codes start.
template <PackKind kKind>
constexpr int64_t kPairBytes = kKind == PackKind::kQ8 ? 1024 : UnitBytes(BlockTraitsOf(kKind));
template <PackKind kKind>
inline int64_t CodesOf(int cols) {
  return kKind == PackKind::kQ8 ? Q8CodesAt(cols) : 0;
}
