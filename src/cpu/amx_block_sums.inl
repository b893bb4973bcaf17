// SPDX-License-Identifier: Apache-2.0
// Products on AMX where a factor comes every 32 columns, whatever the codes are, for one and two
// planes of activations: each tile instruction sums one block and vectors take the sums over. 16
// tokens by one panel keep their sixteen vectors of floats in registers for a whole strip. Included
// after kernels_amx.h and panels.h, inside an unnamed namespace.

constexpr int kTile = kQuantBlock * kPanelRows;  // bytes of a block's weights
constexpr int kBlockRows = 128;                  // tokens that stay in L2 while the weights pass
constexpr int kPairs = kStripBlocks / 2;         // blocks are taken in pairs
constexpr int kStripLines = kStripBlocks * kTile / 64;
constexpr int kSumRoom = 32;  // for a strip's sums of blocks, in whole vectors
static_assert(kStripBlocks <= kSumRoom);
constexpr ShapesByTokens kShapes = ShapesOfDepth(kQuantBlock);

// The signed codes of a strip of one panel.
struct alignas(64) Codes {
  int8_t tiles[kStripBlocks][kTile];
};

// What the tiles leave for the vectors: of both blocks of a pair the high sums, then the low. One
// plane leaves low ones alone.
struct alignas(64) Sums {
  int32_t high[2][kTileInts], low[2][kTileInts];  // [block][token][row]
};

[[gnu::always_inline]] inline __m512 Joined(const int32_t* high, const int32_t* low) {
  const __m512i shifted = _mm512_slli_epi32(_mm512_load_si512(high), 8);
  return _mm512_cvtepi32_ps(_mm512_add_epi32(shifted, _mm512_load_si512(low)));
}

inline __m512 Widened(const uint8_t* halves) {
  return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(halves)));
}

// What the vectors do beside the tiles of a step: a pair of blocks that was stored a step before.
struct Late {
  const Sums* sums;
  const uint8_t* scales;
  const float* token_scales;  // with two planes [token], with one as block_sums
  const float* block_sums;    // from the pair's first block on, [token][kSumRoom]
};

// The scales of both blocks of a pair, and their minima.
struct PairScales {
  __m512 scales[2], minima[2];
};

// Tokens [kFirst, kFirst + 4) of one or both blocks of a pair.
template <class Format, int kFirst, bool kTwo>
[[gnu::always_inline]] inline void UseSums(const Late& late, const PairScales& pair,
                                           __m512 (&totals)[kTileRows]) {
#pragma GCC unroll 4
  for (int t = kFirst; t < kFirst + 4; ++t) {
#pragma GCC unroll 2
    for (int b = 0; b < (kTwo ? 2 : 1); ++b) {
      const int at = t * kPanelRows;
      const float* own = late.token_scales + (Format::kPlanes == 2 ? t : t * kSumRoom + b);
      const __m512 token_scale = _mm512_set1_ps(*own);
      const __m512 scale = _mm512_mul_ps(pair.scales[b], token_scale);
      const __m512 sum = Format::kPlanes == 2
                             ? Joined(late.sums->high[b] + at, late.sums->low[b] + at)
                             : _mm512_cvtepi32_ps(_mm512_load_si512(late.sums->low[b] + at));
      totals[t] = _mm512_fmadd_ps(sum, scale, totals[t]);
      if constexpr (Format::kHasMin) {
        const __m512 x_sum = _mm512_set1_ps(late.block_sums[t * kSumRoom + b]);
        totals[t] = _mm512_fmadd_ps(x_sum, _mm512_mul_ps(pair.minima[b], token_scale), totals[t]);
      }
    }
  }
}

// Up to 16 tokens through a strip of one panel.
struct Job {
  const int8_t *hi, *lo;  // the first token's columns of the strip
  const int8_t* codes;    // [block][kTile], signed
  const uint8_t* scales;
  float token_scales[kTileRows];                        // with two planes
  alignas(64) float block_scales[kTileRows][kSumRoom];  // with one
  alignas(64) float block_sums[kTileRows][kSumRoom];    // of the activations, for minima
  int pairs;
  bool last_is_half;  // the last pair has one block
  bool first_strip;   // there are no totals yet
  float* y;
  const float* bias;  // of the panel after the last strip, or null
  int begin, end;     // tokens to store: those before are done, those behind do not exist
};

// The sums of a token's blocks, up to a strip of them; joined where there are high ones.
inline void FillSums(const int32_t* high, const int32_t* low, int blocks, float* out) {
  for (int i = 0; i < kStripBlocks; i += 16) {
    const int left = (blocks < kStripBlocks ? blocks : kStripBlocks) - i;
    const auto lanes =
        static_cast<__mmask16>(left >= 16 ? 0xffff : (left > 0 ? (1 << left) - 1 : 0));
    __m512i joined = _mm512_maskz_loadu_epi32(lanes, low + i);
    if (high != nullptr) {
      const __m512i shifted = _mm512_slli_epi32(_mm512_maskz_loadu_epi32(lanes, high + i), 8);
      joined = _mm512_add_epi32(shifted, joined);
    }
    _mm512_store_ps(out + i, _mm512_cvtepi32_ps(joined));
  }
}

// All jobs of some panels and tokens, in their order, and the weights for them. A Format says how
// panels are read:
//   kPlanes       of the activations: one has a scale per block, two have one per strip
//   kHasMin       whether minima lie a line behind the scales
//   kScaleStride  bytes from the scales of a pair of blocks to those of the next
//   Scales(w, panel, strip)  where the strip's scales begin
//   Scale(at, block)         the scales of 16 rows, of the first or second block of a pair
//   Unpacker      turns a strip's codes into signed bytes: Start(w, panel, strip, codes), then
//                 Lines(count) until nothing is left; Lines(kStripLines) always finishes
template <class Format>
class Walk {
 public:
  Walk(const MatmulArgs& args, int panel_begin, int panel_end, int begin, int end)
      : args_(args),
        panel_(panel_begin),
        panel_end_(panel_end),
        token_(begin),
        begin_(begin),
        end_(end),
        strips_((args.x->cols + kStrip - 1) / kStrip) {
    // A quarter of a step unpacks so much that the next strip is there in time.
    const int quarters = 4 * kPairs * ((end - begin + kTileRows - 1) / kTileRows);
    lines_ = (kStripLines + quarters - 1) / quarters;
    next_.Start(*args.w, panel_, 0, codes_[0]);
    StartStrip();
  }
  bool Next(Job& job) {
    if (panel_ == panel_end_) return false;
    Fill(job);
    token_ += kTileRows;
    if (token_ < end_) return true;
    token_ = begin_;
    if (++strip_ == strips_) {
      strip_ = 0;
      ++panel_;
    }
    new_strip_ = true;
    return true;
  }
  [[gnu::always_inline]] void Unpack() { next_.Lines(lines_); }

 private:
  // The weights of this strip are complete from here on, those of the one behind it begin.
  void StartStrip() {
    next_.Lines(kStripLines);
    TileFence();
    const bool last = strip_ + 1 == strips_;
    const int panel = last ? panel_ + 1 : panel_;
    now_ = 1 - now_;
    if (panel < panel_end_) next_.Start(*args_.w, panel, last ? 0 : strip_ + 1, codes_[1 - now_]);
    new_strip_ = false;
  }
  void Fill(Job& job) {
    if (new_strip_) StartStrip();
    const Activations& x = *args_.x;
    const PackedMatrix& w = *args_.w;
    // The last tokens reach back over rows that are done rather than past the end.
    const int count = x.m < kTileRows ? x.m : kTileRows;
    const int first = token_ + count <= x.m ? token_ : x.m - count;
    const int blocks = w.cols / kQuantBlock - strip_ * kStripBlocks;
    const int64_t at = int64_t{first} * x.stride + strip_ * kStrip;
    const bool last = strip_ + 1 == strips_;
    job.hi = Format::kPlanes == 2 ? x.hi + at : nullptr;
    job.lo = x.lo + at;
    job.codes = codes_[now_].tiles[0];
    job.scales = Format::Scales(w, panel_, strip_);
    job.pairs = blocks < kStripBlocks ? (blocks + 1) / 2 : kPairs;
    job.last_is_half = blocks < kStripBlocks && blocks % 2 != 0;
    job.first_strip = strip_ == 0;
    job.y = args_.y + first * args_.y_stride + panel_ * kPanelRows;
    job.bias = last && args_.bias != nullptr ? args_.bias + panel_ * kPanelRows : nullptr;
    job.begin = token_ - first;
    job.end = count;
    for (int t = 0; t < count; ++t) {
      const float* scales = x.scale + int64_t{first + t} * x.num_strips;
      if constexpr (Format::kPlanes == 2) {
        job.token_scales[t] = scales[strip_];
      } else {
        const int here = blocks < kStripBlocks ? blocks : kStripBlocks;
        __builtin_memcpy(job.block_scales[t], scales + strip_ * kStripBlocks,
                         static_cast<size_t>(here) * sizeof(float));
      }
      if constexpr (Format::kHasMin) {
        const int64_t block = int64_t{first + t} * x.num_blocks + strip_ * kStripBlocks;
        FillSums(Format::kPlanes == 2 ? x.sum_hi + block : nullptr, x.sum_lo + block, blocks,
                 job.block_sums[t]);
      }
    }
  }

  const MatmulArgs& args_;
  int panel_, panel_end_, strip_ = 0, token_, begin_, end_, strips_;
  int lines_, now_ = 1;  // which codes are those of the strip
  bool new_strip_ = false;
  typename Format::Unpacker next_;
  Codes codes_[2];
};

[[gnu::always_inline]] inline void LoadTotals(const Job& job, int64_t stride,
                                              __m512 (&totals)[kTileRows]) {
#pragma GCC unroll 16
  for (int t = 0; t < kTileRows; ++t) {
    const bool continues = !job.first_strip && t < job.end;
    totals[t] = continues ? _mm512_loadu_ps(job.y + t * stride) : _mm512_setzero_ps();
  }
}
[[gnu::always_inline]] inline void StoreTotals(const Job& job, int64_t stride,
                                               const __m512 (&totals)[kTileRows]) {
  const __m512 bias = job.bias != nullptr ? _mm512_loadu_ps(job.bias) : _mm512_setzero_ps();
#pragma GCC unroll 16
  for (int t = 0; t < kTileRows; ++t) {
    if (t < job.begin || t >= job.end) continue;
    // Not plus zero without a bias: that would turn -0 into 0.
    const __m512 y = job.bias != nullptr ? _mm512_add_ps(totals[t], bias) : totals[t];
    _mm512_storeu_ps(job.y + t * stride, y);
  }
}

template <class Format>
inline Late LatePair(const Sums& sums, const Job& job, int pair) {
  return {&sums, job.scales + pair * Format::kScaleStride,
          Format::kPlanes == 2 ? job.token_scales : &job.block_scales[0][2 * pair],
          &job.block_sums[0][2 * pair]};
}

// Sums a pair of blocks, after storing to `out` the sums that were in its tiles. Vectors bound it:
// while tiles are at work, port 5 does no float operations and port 0 has four vectors to do for
// each token of a block (six with a minimum). So nothing else may come on top: each piece of tile
// work is followed by vector work on sums that were stored a pair of blocks before, and by a few
// lines of unpacking the weights that come next. With everything in L1 a block of Q8 takes about 90
// cycles where its tiles alone take 45; activations out of L2 cost another fifth, but two panels
// taking turns to share them in L1 were slower, as was prefetching them.
template <class Format, bool kSums, bool kStores, bool kUses, bool kTwo>
[[gnu::always_inline]] inline void Step(const Job& job, int64_t stride, int pair,
                                        Walk<Format>& walk, Sums& out, const Late& late,
                                        __m512 (&totals)[kTileRows]) {
  constexpr bool kHigh = Format::kPlanes == 2;
  [[maybe_unused]] const int8_t* hi = kHigh ? job.hi + pair * 2 * kQuantBlock : nullptr;
  const int8_t* lo = job.lo + pair * 2 * kQuantBlock;
  const int8_t* codes = job.codes + pair * 2 * kTile;
  PairScales scales;
  if constexpr (kUses) {
#pragma GCC unroll 2
    for (int b = 0; b < (kTwo ? 2 : 1); ++b) {
      scales.scales[b] = Format::Scale(late.scales, b);
      if constexpr (Format::kHasMin) scales.minima[b] = Format::Scale(late.scales, 2 + b);
    }
  }
  if constexpr (kSums) _tile_loadd(6, codes, 64);
  if constexpr (kSums && kHigh) _tile_loadd(4, hi, stride);
  if constexpr (kStores && kHigh) _tile_stored(0, out.high[0], 64);
  if constexpr (kSums && kHigh) {
    _tile_zero(0);
    _tile_dpbssd(0, 4, 6);
  }
  if constexpr (kSums) walk.Unpack();
  if constexpr (kUses) UseSums<Format, 0, kTwo>(late, scales, totals);
  TileFence();
  if constexpr (kSums) _tile_loadd(5, lo, stride);
  if constexpr (kStores) _tile_stored(1, out.low[0], 64);
  if constexpr (kSums) {
    _tile_zero(1);
    _tile_dpbssd(1, 5, 6);
    walk.Unpack();
  }
  if constexpr (kUses) UseSums<Format, 4, kTwo>(late, scales, totals);
  TileFence();
  // The last of an odd number of blocks has no second: any weights, but activations of zero.
  if constexpr (kSums) _tile_loadd(7, codes + kTile, 64);
  if constexpr (kSums && kHigh) _tile_loadd(4, hi + kQuantBlock, stride);
  if constexpr (kStores && kHigh) _tile_stored(2, out.high[1], 64);
  if constexpr (kSums && kHigh) {
    _tile_zero(2);
    _tile_dpbssd(2, 4, 7);
  }
  if constexpr (kSums) walk.Unpack();
  if constexpr (kUses) UseSums<Format, 8, kTwo>(late, scales, totals);
  TileFence();
  if constexpr (kSums) _tile_loadd(5, lo + kQuantBlock, stride);
  if constexpr (kStores) _tile_stored(3, out.low[1], 64);
  if constexpr (kSums) {
    _tile_zero(3);
    _tile_dpbssd(3, 5, 7);
    walk.Unpack();
  }
  if constexpr (kUses) UseSums<Format, 12, kTwo>(late, scales, totals);
  TileFence();
}

// The second of a job's last two pairs, beside pair 1 of the next job or beside nothing.
template <class Format, bool kSums, bool kStores>
[[gnu::always_inline]] inline void LastStep(const Job& done, const Job& job, int64_t stride,
                                            Walk<Format>& walk, Sums& out, const Sums& in,
                                            __m512 (&totals)[kTileRows]) {
  const Late late = LatePair<Format>(in, done, done.pairs - 1);
  if (done.last_is_half) {
    Step<Format, kSums, kStores, true, false>(job, stride, 1, walk, out, late, totals);
  } else {
    Step<Format, kSums, kStores, true, true>(job, stride, 1, walk, out, late, totals);
  }
}

// Rows [begin, end) of the activations through some panels. A job's last two pairs are used beside
// the first two of the next, so that the tiles never wait.
template <class Format>
void Product(const MatmulArgs& args, int panel_begin, int panel_end, int begin, int end) {
  const int64_t stride = args.x->stride, y_stride = args.y_stride;
  Walk<Format> walk(args, panel_begin, panel_end, begin, end);
  Sums sums[2];
  Job jobs[2] = {};
  __m512 totals[kTileRows];
  bool waits = false;  // the job before has two pairs that are not used yet
  int now = 0, out = 0;
  for (; walk.Next(jobs[now]); now = 1 - now) {
    const Job &job = jobs[now], &before = jobs[1 - now];
    if (waits) {
      const Late late = LatePair<Format>(sums[1 - out], before, before.pairs - 2);
      Step<Format, true, true, true, true>(job, stride, 0, walk, sums[out], late, totals);
      if (job.pairs > 1) {
        LastStep<Format, true, true>(before, job, stride, walk, sums[1 - out], sums[out], totals);
      } else {
        LastStep<Format, false, true>(before, job, stride, walk, sums[1 - out], sums[out], totals);
      }
      StoreTotals(before, y_stride, totals);
    } else {
      Step<Format, true, false, false, false>(job, stride, 0, walk, sums[out], {}, totals);
      if (job.pairs > 1) {
        Step<Format, true, true, false, false>(job, stride, 1, walk, sums[1 - out], {}, totals);
      } else {
        Step<Format, false, true, false, false>(job, stride, 1, walk, sums[1 - out], {}, totals);
      }
    }
    // Either way the job's first pair is in sums[1 - out] now.
    LoadTotals(job, y_stride, totals);
    if (job.pairs == 1) {
      LastStep<Format, false, false>(job, job, stride, walk, sums[out], sums[1 - out], totals);
      StoreTotals(job, y_stride, totals);
      waits = false;
      continue;
    }
    for (int pair = 2; pair < job.pairs; ++pair) {
      const Late late = LatePair<Format>(sums[1 - out], job, pair - 2);
      Step<Format, true, true, true, true>(job, stride, pair, walk, sums[out], late, totals);
      out = 1 - out;
    }
    waits = true;
  }
  if (!waits) return;
  const Job& job = jobs[1 - now];
  const Late late = LatePair<Format>(sums[1 - out], job, job.pairs - 2);
  Step<Format, false, true, true, true>(job, stride, 0, walk, sums[out], late, totals);
  LastStep<Format, false, false>(job, job, stride, walk, sums[1 - out], sums[out], totals);
  StoreTotals(job, y_stride, totals);
}

template <class Format>
void Products(const MatmulArgs& args, int panel_begin, int panel_end) {
  const int m = args.x->m;
  if (m == 0 || panel_begin >= panel_end) return;
  _tile_loadconfig(&kShapes.of[m < kTileRows ? m : kTileRows]);
  for (int begin = 0; begin < m; begin += kBlockRows) {
    const int end = begin + kBlockRows < m ? begin + kBlockRows : m;
    Product<Format>(args, panel_begin, panel_end, begin, end);
  }
  _tile_release();
}
