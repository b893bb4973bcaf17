/* SPDX-License-Identifier: Apache-2.0 */
/* Decode attention on NVIDIA GPUs, as C: one query token per sequence over an FP16 cache of K and
 * V, results in FP32. Verified by emulation, not yet on hardware. flash_attention_v2_opt(3) says
 * more. */
#ifndef HEARTH_FLASH_ATTENTION_V2_OPT_H
#define HEARTH_FLASH_ATTENTION_V2_OPT_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* What functions return. flash_attention_v2_opt_last_error has the reason in words. */
enum {
  FLASH_ATTENTION_V2_OPT_OK = 0,
  FLASH_ATTENTION_V2_OPT_INVALID = 1,       /* an argument makes no sense */
  FLASH_ATTENTION_V2_OPT_STATE = 2,         /* not in this order */
  FLASH_ATTENTION_V2_OPT_NO_DEVICE = 3,     /* no driver, no such GPU, no kernels in the library */
  FLASH_ATTENTION_V2_OPT_OUT_OF_MEMORY = 4, /* of the GPU or of pinned host memory */
  FLASH_ATTENTION_V2_OPT_DRIVER = 5         /* the driver refused; after a lost GPU, always */
};

/* Positions of a block in a paged cache. */
#define FLASH_ATTENTION_V2_OPT_BLOCK 16

typedef struct flash_attention_v2_opt_config {
  size_t size;      /* sizeof(flash_attention_v2_opt_config) */
  int device;       /* 0: the first GPU */
  int batch_size;   /* sequences */
  int num_heads;    /* of queries; a multiple of num_kv_heads */
  int num_kv_heads; /* of K and V */
  int head_dim;     /* 64 or 128 */
  int max_seq_len;  /* positions of a sequence, at most */
  int num_blocks;   /* of a paged cache; 0: the cache is contiguous */
  float scale;      /* of scores; 0: 1 / sqrt(head_dim) */
} flash_attention_v2_opt_config;

/* With handles. One thread at a time for each; several handles at a time are fine.
 *   q: FP16 [batch_size, num_heads, head_dim]
 *   k, v, contiguous: FP16 [batch_size, num_kv_heads, max_seq_len, head_dim]
 *   k, v, paged: FP16 [num_blocks, num_kv_heads, 16, head_dim]
 *   block_tables: [batch_size, blocks of max_seq_len]; NULL for a contiguous cache
 *   seq_lens: [batch_size], each 0 to max_seq_len; a sequence of length 0 gets zeros
 * FP16 values are IEEE halves, as bits. Everything is copied: nothing is read after a call. */
typedef struct flash_attention_v2_opt_handle flash_attention_v2_opt_handle;
int flash_attention_v2_opt_create(const flash_attention_v2_opt_config* config,
                                  flash_attention_v2_opt_handle** handle);
int flash_attention_v2_opt_handle_load_qkv(flash_attention_v2_opt_handle* handle, const uint16_t* q,
                                           const uint16_t* k, const uint16_t* v,
                                           const int32_t* block_tables, const int32_t* seq_lens);
int flash_attention_v2_opt_handle_decode_gpu(flash_attention_v2_opt_handle* handle);
/* out: FP32 [batch_size, num_heads, head_dim], `count` floats. Waits for the GPU. */
int flash_attention_v2_opt_handle_get_output(flash_attention_v2_opt_handle* handle, float* out,
                                             size_t count);
/* Forgets what was loaded; memory stays. */
int flash_attention_v2_opt_handle_reset(flash_attention_v2_opt_handle* handle);
void flash_attention_v2_opt_destroy(flash_attention_v2_opt_handle* handle); /* NULL: nothing */

/* The same with one handle that the library keeps. One thread at a time. */
int flash_attention_v2_opt_init(const flash_attention_v2_opt_config* config);
int flash_attention_v2_opt_load_qkv(const uint16_t* q, const uint16_t* k, const uint16_t* v,
                                    const int32_t* block_tables, const int32_t* seq_lens);
int flash_attention_v2_opt_decode_gpu(void);
int flash_attention_v2_opt_get_output(float* out, size_t count);
int flash_attention_v2_opt_reset(void);
int flash_attention_v2_opt_cleanup(void); /* at any time, also twice */

/* All of it in one call, with a handle of its own. */
int flash_attention_v2_opt_decode(const flash_attention_v2_opt_config* config, const uint16_t* q,
                                  const uint16_t* k, const uint16_t* v, const int32_t* block_tables,
                                  const int32_t* seq_lens, float* out, size_t count);

/* Why the calling thread's last call failed; empty when it did not. */
const char* flash_attention_v2_opt_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
