// SPDX-License-Identifier: Apache-2.0
// Reading panels of Q4_0, Q4_1, Q5_0, Q5_1 and IQ4_NL with AVX-512. Included after panels_blocks.h,
// inside an unnamed namespace.

// What nibbles of IQ4_NL stand for, plus an offset.
struct Table {
  alignas(16) uint8_t weights[16];
};
constexpr Table TableOf(int offset) {
  Table table{};
  for (int i = 0; i < 16; ++i) table.weights[i] = static_cast<uint8_t>(kIq4Codes[i] + offset);
  return table;
}
template <int kOffset>
constexpr Table kTable = TableOf(kOffset);

// Line `line` of a unit's block: four columns of sixteen rows as bytes. Codes as they are, weights
// from a table plus kOffset.
template <PackKind kKind, int kBlock, int kOffset>
inline __m512i CodeLine(const uint8_t* unit, int line) {
  constexpr BlockTraits kTraits = BlockTraitsOf(kKind);
  const __m512i raw = _mm512_load_si512(unit + CodesAt(kTraits) + line * 64);
  const __m512i code =
      _mm512_and_si512(kBlock == 0 ? raw : _mm512_srli_epi16(raw, 4), _mm512_set1_epi8(15));
  if constexpr (kTraits.has_table) {
    const auto* table = reinterpret_cast<const __m128i*>(kTable<kOffset>.weights);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_load_si128(table)), code);
  }
  if constexpr (kTraits.has_fifth) {
    const __m512i bits = _mm512_load_si512(unit + FifthAt(kTraits) + line / 4 * 64);
    const __m512i bit = _mm512_set1_epi8(static_cast<char>(1 << (4 * kBlock + line % 4)));
    return _mm512_mask_add_epi8(code, _mm512_test_epi8_mask(bits, bit), code, _mm512_set1_epi8(16));
  }
  return code;
}

inline __m512 Halves(const uint16_t* at) {
  return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(at)));
}
