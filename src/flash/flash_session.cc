// SPDX-License-Identifier: Apache-2.0
#include "flash/flash_session.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cuda/flash.h"

namespace hearth::cuda {
namespace {

constexpr size_t kStaging = size_t{4} << 20;
// So large that products of sizes stay far below what int64 holds.
constexpr int kMost = 1 << 20;

// Blocks of a kernel that a processor holds at once, by the registers that cuda/kernels.cu grants.
int BlocksPerProcessor(int d_head) { return d_head == 64 ? 4 : 2; }

Status CheckConfig(const FlashConfig& c) {
  const auto is_count = [](int n) { return n > 0 && n <= kMost; };
  if (c.d_head != 64 && c.d_head != 128) {
    return Error(Code::kInvalid, "head_dim is %d; it must be 64 or 128", c.d_head);
  }
  if (!is_count(c.n_kv_heads) || !is_count(c.n_heads) || c.n_heads % c.n_kv_heads != 0) {
    return Error(Code::kInvalid, "%d heads over %d KV heads: the first must be a multiple",
                 c.n_heads, c.n_kv_heads);
  }
  if (!is_count(c.sequences) || c.sequences > 65535) {
    return Error(Code::kInvalid, "batch_size is %d; it must be 1 to 65535", c.sequences);
  }
  if (!is_count(c.max_positions)) {
    return Error(Code::kInvalid, "max_seq_len is %d; it must be 1 to %d", c.max_positions, kMost);
  }
  if (c.num_blocks < 0 || c.num_blocks > kMost) {
    return Error(Code::kInvalid, "num_blocks is %d; it must be 0 to %d", c.num_blocks, kMost);
  }
  if (!std::isfinite(c.scale)) return Error(Code::kInvalid, "scale is no number");
  return Status();
}

}  // namespace

Result<std::unique_ptr<FlashSession>> FlashSession::Open(const FlashConfig& config,
                                                         std::span<const std::byte> image) {
  HEARTH_TRY(CheckConfig(config));
  if (image.empty()) {
    return Error(Code::kNotFound, "this library was built without CUDA kernels");
  }
  Result<std::unique_ptr<Device>> device = Device::Open(config.device, image);
  if (!device.ok()) {
    const Status why = device.status();
    // Whatever is missing, there is no GPU to work on.
    return why.code() == Code::kUnsupported ? Status(Code::kNotFound, why.message()) : why;
  }
  FlashConfig full = config;
  if (full.scale == 0.0f) full.scale = 1.0f / std::sqrt(static_cast<float>(config.d_head));
  std::unique_ptr<FlashSession> session(new FlashSession(*std::move(device), full));
  HEARTH_TRY(session->Reserve());
  return session;
}

FlashSession::~FlashSession() {
  if (device_->Enter().ok()) device_->Drain();
}

size_t FlashSession::CacheHalves() const {
  const auto row = static_cast<size_t>(config_.n_kv_heads) * static_cast<size_t>(config_.d_head);
  if (config_.num_blocks > 0) return static_cast<size_t>(config_.num_blocks) * kBlockTokens * row;
  return static_cast<size_t>(config_.sequences) * static_cast<size_t>(config_.max_positions) * row;
}

size_t FlashSession::OutFloats() const {
  return static_cast<size_t>(config_.sequences) * static_cast<size_t>(config_.n_heads) *
         static_cast<size_t>(config_.d_head);
}

Status FlashSession::Reserve() {
  const auto take = [&](DeviceBlock& block, size_t bytes, const char* what) -> Status {
    HEARTH_ASSIGN(block, device_->Take(static_cast<int64_t>(bytes), what));
    return Status();
  };
  HEARTH_TRY(take(k_, 2 * CacheHalves(), "keys"));
  HEARTH_TRY(take(v_, 2 * CacheHalves(), "values"));
  HEARTH_TRY(take(q_, 2 * OutFloats(), "queries"));
  HEARTH_TRY(take(out_, 4 * OutFloats(), "results"));
  const auto sequences = static_cast<size_t>(config_.sequences);
  HEARTH_TRY(take(tables_, 4 * sequences * static_cast<size_t>(TableBlocks()), "block tables"));
  HEARTH_TRY(take(lengths_, 4 * sequences, "lengths"));
  HEARTH_ASSIGN(staging_, device_->TakePinned(static_cast<int64_t>(kStaging), "copies"));
  HEARTH_ASSIGN(result_, device_->TakePinned(static_cast<int64_t>(4 * OutFloats()), "results"));
  return Status();
}

Status FlashSession::CheckLoad(const int32_t* tables, const int32_t* lengths) const {
  if ((tables != nullptr) != (config_.num_blocks > 0)) {
    return Error(Code::kInvalid, "a paged cache needs block tables, a contiguous one has none");
  }
  for (int s = 0; s < config_.sequences; ++s) {
    if (lengths[s] < 0 || lengths[s] > config_.max_positions) {
      return Error(Code::kInvalid, "sequence %d has length %d; max_seq_len is %d", s, lengths[s],
                   config_.max_positions);
    }
    if (tables == nullptr) continue;
    const int blocks = (lengths[s] + kBlockTokens - 1) / kBlockTokens;
    for (int b = 0; b < blocks; ++b) {
      const int32_t block = tables[int64_t{s} * TableBlocks() + b];
      if (block >= 0 && block < config_.num_blocks) continue;
      return Error(Code::kInvalid, "sequence %d names block %d; there are %d", s, block,
                   config_.num_blocks);
    }
  }
  return Status();
}

Status FlashSession::Upload(void* to, const void* from, size_t bytes) {
  for (size_t done = 0; done < bytes; done += kStaging) {
    const size_t count = std::min(kStaging, bytes - done);
    std::memcpy(staging_.data(), static_cast<const std::byte*>(from) + done, count);
    HEARTH_TRY(device_->CopyIn(static_cast<std::byte*>(to) + done, staging_.data(), count));
    HEARTH_TRY(device_->Mark());
    HEARTH_TRY(device_->Wait());
  }
  return Status();
}

Status FlashSession::Load(const uint16_t* q, const uint16_t* k, const uint16_t* v,
                          const int32_t* tables, const int32_t* lengths) {
  if (q == nullptr || k == nullptr || v == nullptr || lengths == nullptr) {
    return Error(Code::kInvalid, "q, k, v and seq_lens must not be NULL");
  }
  HEARTH_TRY(CheckLoad(tables, lengths));
  HEARTH_TRY(device_->Enter());
  // Half a load is none.
  state_ = State::kReady;
  const auto sequences = static_cast<size_t>(config_.sequences);
  const int longest = *std::max_element(lengths, lengths + sequences);
  const int blocks = config_.n_kv_heads * HeadTiles() * config_.sequences;
  const int slots = device_->facts().num_processors * BlocksPerProcessor(config_.d_head);
  plan_ = PlanSplits(blocks, slots, longest);
  const size_t parts = sequences * static_cast<size_t>(config_.n_heads) *
                       static_cast<size_t>(plan_.splits) * static_cast<size_t>(config_.d_head + 2);
  if (4 * parts > parts_.size()) {
    parts_ = DeviceBlock();
    HEARTH_ASSIGN(parts_, device_->Take(static_cast<int64_t>(4 * parts), "splits"));
  }
  HEARTH_TRY(Upload(q_.at(), q, 2 * OutFloats()));
  HEARTH_TRY(Upload(k_.at(), k, 2 * CacheHalves()));
  HEARTH_TRY(Upload(v_.at(), v, 2 * CacheHalves()));
  HEARTH_TRY(Upload(lengths_.at(), lengths, 4 * sequences));
  if (tables != nullptr) HEARTH_TRY(Upload(tables_.at(), tables, tables_.size()));
  state_ = State::kLoaded;
  return Status();
}

Status FlashSession::Decode() {
  if (state_ == State::kReady) {
    return Error(Code::kUnsupported, "decode_gpu before load_qkv: nothing is loaded");
  }
  HEARTH_TRY(device_->Enter());
  FlashArgs args{};
  args.q = q_.at<const uint16_t>();
  args.k = k_.at<const uint16_t>();
  args.v = v_.at<const uint16_t>();
  args.tables = config_.num_blocks > 0 ? tables_.at<const int32_t>() : nullptr;
  args.lengths = lengths_.at<const int32_t>();
  args.parts = parts_.at<float>();
  args.out = out_.at<float>();
  args.table_stride = TableBlocks();
  args.max_positions = config_.max_positions;
  args.n_heads = config_.n_heads;
  args.n_kv_heads = config_.n_kv_heads;
  args.d_head = config_.d_head;
  args.splits = plan_.splits;
  args.split_tiles = plan_.split_tiles;
  args.scale = config_.scale;
  const Grid grid{plan_.splits, int64_t{config_.n_kv_heads} * HeadTiles(), config_.sequences,
                  kFlashThreads, FlashSharedBytes(config_.d_head)};
  state_ = State::kLoaded;  // until both are asked for
  const Kernel kernel = config_.d_head == 64 ? Kernel::kFlash64 : Kernel::kFlash128;
  HEARTH_TRY(device_->Launch(kernel, grid, args));
  HEARTH_TRY(device_->Launch(Kernel::kFlashReduce,
                             {config_.n_heads, config_.sequences, 1, kWarp, 0}, args));
  state_ = State::kDecoded;
  return Status();
}

Status FlashSession::GetOutput(float* out, size_t count) {
  if (state_ != State::kDecoded) {
    return Error(Code::kUnsupported, "get_output before decode_gpu: there is no result");
  }
  if (out == nullptr || count != OutFloats()) {
    return Error(Code::kInvalid, "get_output for %zu floats; there are %zu", count, OutFloats());
  }
  HEARTH_TRY(device_->Enter());
  HEARTH_TRY(device_->CopyOut(result_.data(), out_.at(), 4 * count));
  HEARTH_TRY(device_->Mark());
  HEARTH_TRY(device_->Wait());
  std::memcpy(out, result_.data(), 4 * count);
  return Status();
}

Status FlashSession::Reset() {
  HEARTH_TRY(device_->Enter());
  device_->Drain();
  state_ = State::kReady;
  return Status();
}

}  // namespace hearth::cuda
