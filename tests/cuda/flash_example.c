/* SPDX-License-Identifier: Apache-2.0 */
/* One query over two positions with the C API of flash attention: what flash_attention_v2_opt(3)
 * shows, compiled as C and run by tests/cuda on the mock driver. */
#include <hearth/flash_attention_v2_opt.h>
#include <stdio.h>

enum { kHeads = 2, kDim = 64, kPositions = 2 };

int main(void) {
  static uint16_t q[kHeads * kDim], k[kPositions * kDim], v[kPositions * kDim];
  static float out[kHeads * kDim];
  const int32_t lengths[1] = {kPositions};
  flash_attention_v2_opt_config config = {0};
  config.size = sizeof config;
  config.batch_size = 1;
  config.num_heads = kHeads;
  config.num_kv_heads = 1;
  config.head_dim = kDim;
  config.max_seq_len = kPositions;
  /* With queries of zero both positions weigh the same: the result is the mean of V. */
  for (int d = 0; d < kDim; ++d) {
    v[d] = 0x3c00;        /* 1.0 */
    v[kDim + d] = 0x4200; /* 3.0 */
  }
  if (flash_attention_v2_opt_decode(&config, q, k, v, NULL, lengths, out, kHeads * kDim) !=
      FLASH_ATTENTION_V2_OPT_OK) {
    fprintf(stderr, "%s\n", flash_attention_v2_opt_last_error());
    return 1;
  }
  printf("%g %g\n", out[0], out[kHeads * kDim - 1]);
  return 0;
}
