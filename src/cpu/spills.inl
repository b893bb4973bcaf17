// SPDX-License-Identifier: Apache-2.0
// MXFP4 blocks that do not fold, after all strips and before the bias. Included after canon.inl and
// panels.h, inside an unnamed namespace.

void AddSpills(const MatmulArgs& args, int row_begin, int row_end) {
  const PackedMatrix& w = *args.w;
  const Activations& x = *args.x;
  int first = 0, last = w.num_spills;  // the first spill at or after row_begin
  while (first < last) {
    const int middle = (first + last) / 2;
    if (w.spills[middle].row < row_begin) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  for (int s = first; s < w.num_spills && w.spills[s].row < row_end; ++s) {
    const SpilledBlock& spill = w.spills[s];
    for (int t = 0; t < x.m; ++t) {
      const int64_t at = int64_t{t} * x.stride + spill.block * kQuantBlock;
      int32_t exact = 0;
      for (int i = 0; i < kQuantBlock; ++i) {
        exact += spill.w[i] * ((x.planes == 2 ? 256 * x.hi[at + i] : 0) + x.lo[at + i]);
      }
      float& y = args.y[t * args.y_stride + spill.row];
      const int strip = spill.block * kQuantBlock / x.strip;
      const float x_scale = x.scale[int64_t{t} * x.num_strips + strip];
      y = FusedMulAdd(static_cast<float>(exact), spill.scale * x_scale, y);
    }
  }
}
