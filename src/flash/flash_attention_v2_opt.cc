// SPDX-License-Identifier: Apache-2.0
// The C API over FlashSession: checks what only C can get wrong, and turns errors into numbers.
#include <hearth/flash_attention_v2_opt.h>

#include <memory>
#include <string>

#include "cuda/fatbin.h"
#include "flash/flash_image.h"
#include "flash/flash_session.h"

using hearth::Code;
using hearth::Error;
using hearth::Result;
using hearth::Status;
using hearth::cuda::FlashSession;

struct flash_attention_v2_opt_handle {
  std::unique_ptr<FlashSession> session;
};

namespace hearth::cuda {
namespace {
std::span<const std::byte> set_image;
}  // namespace
std::span<const std::byte> FlashImage() { return set_image.empty() ? Fatbin() : set_image; }
void SetFlashImage(std::span<const std::byte> image) { set_image = image; }
}  // namespace hearth::cuda

namespace {

thread_local std::string last_error;
// What the functions without a handle work on.
flash_attention_v2_opt_handle* kept = nullptr;

int Told(const Status& status) {
  last_error = status.message();
  switch (status.code()) {
    case Code::kOk:
      return FLASH_ATTENTION_V2_OPT_OK;
    case Code::kInvalid:
      return FLASH_ATTENTION_V2_OPT_INVALID;
    case Code::kUnsupported:
      return FLASH_ATTENTION_V2_OPT_STATE;
    case Code::kNotFound:
      return FLASH_ATTENTION_V2_OPT_NO_DEVICE;
    case Code::kExhausted:
      return FLASH_ATTENTION_V2_OPT_OUT_OF_MEMORY;
    default:
      return FLASH_ATTENTION_V2_OPT_DRIVER;
  }
}

Result<std::unique_ptr<FlashSession>> Opened(const flash_attention_v2_opt_config* config) {
  if (config == nullptr || config->size != sizeof *config) {
    return Error(Code::kInvalid, "the configuration is NULL or its `size` is not sizeof of it");
  }
  hearth::cuda::FlashConfig wanted;
  wanted.device = config->device;
  wanted.sequences = config->batch_size;
  wanted.n_heads = config->num_heads;
  wanted.n_kv_heads = config->num_kv_heads;
  wanted.d_head = config->head_dim;
  wanted.max_positions = config->max_seq_len;
  wanted.num_blocks = config->num_blocks;
  wanted.scale = config->scale;
  return FlashSession::Open(wanted, hearth::cuda::FlashImage());
}

Status NoHandle() { return Error(Code::kInvalid, "the handle is NULL"); }
Status NotInitialised() { return Error(Code::kUnsupported, "init was not called"); }

}  // namespace

extern "C" {

int flash_attention_v2_opt_create(const flash_attention_v2_opt_config* config,
                                  flash_attention_v2_opt_handle** handle) {
  if (handle == nullptr) return Told(NoHandle());
  *handle = nullptr;
  Result<std::unique_ptr<FlashSession>> opened = Opened(config);
  if (opened.ok()) *handle = new flash_attention_v2_opt_handle{*std::move(opened)};
  return Told(opened.status());
}

int flash_attention_v2_opt_handle_load_qkv(flash_attention_v2_opt_handle* handle, const uint16_t* q,
                                           const uint16_t* k, const uint16_t* v,
                                           const int32_t* block_tables, const int32_t* seq_lens) {
  if (handle == nullptr) return Told(NoHandle());
  return Told(handle->session->Load(q, k, v, block_tables, seq_lens));
}
int flash_attention_v2_opt_handle_decode_gpu(flash_attention_v2_opt_handle* handle) {
  return Told(handle == nullptr ? NoHandle() : handle->session->Decode());
}
int flash_attention_v2_opt_handle_get_output(flash_attention_v2_opt_handle* handle, float* out,
                                             size_t count) {
  return Told(handle == nullptr ? NoHandle() : handle->session->GetOutput(out, count));
}
int flash_attention_v2_opt_handle_reset(flash_attention_v2_opt_handle* handle) {
  return Told(handle == nullptr ? NoHandle() : handle->session->Reset());
}
void flash_attention_v2_opt_destroy(flash_attention_v2_opt_handle* handle) { delete handle; }

int flash_attention_v2_opt_init(const flash_attention_v2_opt_config* config) {
  if (kept != nullptr) {
    return Told(Error(Code::kUnsupported, "init was called already; call cleanup first"));
  }
  return flash_attention_v2_opt_create(config, &kept);
}
int flash_attention_v2_opt_load_qkv(const uint16_t* q, const uint16_t* k, const uint16_t* v,
                                    const int32_t* block_tables, const int32_t* seq_lens) {
  if (kept == nullptr) return Told(NotInitialised());
  return flash_attention_v2_opt_handle_load_qkv(kept, q, k, v, block_tables, seq_lens);
}
int flash_attention_v2_opt_decode_gpu(void) {
  return kept == nullptr ? Told(NotInitialised()) : flash_attention_v2_opt_handle_decode_gpu(kept);
}
int flash_attention_v2_opt_get_output(float* out, size_t count) {
  if (kept == nullptr) return Told(NotInitialised());
  return flash_attention_v2_opt_handle_get_output(kept, out, count);
}
int flash_attention_v2_opt_reset(void) {
  return kept == nullptr ? Told(NotInitialised()) : flash_attention_v2_opt_handle_reset(kept);
}
int flash_attention_v2_opt_cleanup(void) {
  flash_attention_v2_opt_destroy(kept);
  kept = nullptr;
  return Told(Status());
}

int flash_attention_v2_opt_decode(const flash_attention_v2_opt_config* config, const uint16_t* q,
                                  const uint16_t* k, const uint16_t* v, const int32_t* block_tables,
                                  const int32_t* seq_lens, float* out, size_t count) {
  Result<std::unique_ptr<FlashSession>> session = Opened(config);
  if (!session.ok()) return Told(session.status());
  Status status = (*session)->Load(q, k, v, block_tables, seq_lens);
  if (status.ok()) status = (*session)->Decode();
  if (status.ok()) status = (*session)->GetOutput(out, count);
  return Told(status);
}

const char* flash_attention_v2_opt_last_error(void) { return last_error.c_str(); }

}  // extern "C"
