// SPDX-License-Identifier: Apache-2.0
// GGUF files: whatever the parser accepts must lie inside the file, and whoever reads it
// afterwards, up to a whole model, must cope.
#include <memory>

#include "base/check.h"
#include "fuzz/gguf_mutator.h"
#include "model/model.h"
#include "weights/gguf_file.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace hearth {
namespace {

using Bytes = std::span<const std::byte>;

bool Inside(Bytes part, Bytes whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

// Every answer an accessor gives must agree with the type it was asked of.
void ReadValue(const GgufValue& value, Bytes file) {
  HEARTH_CHECK(Inside(value.bytes, file));
  const bool array = value.type == GgufType::kArray;
  HEARTH_CHECK(value.String().has_value() == (value.type == GgufType::kString));
  HEARTH_CHECK(value.Bool().has_value() == (value.type == GgufType::kBool));
  const auto strings = value.Strings();
  HEARTH_CHECK(strings.has_value() == (array && value.element == GgufType::kString));
  HEARTH_CHECK(value.Bools().has_value() == (array && value.element == GgufType::kBool));
  if (strings) HEARTH_CHECK(strings->size() == value.count);
  const auto numbers = value.Numbers();
  if (numbers) HEARTH_CHECK(numbers->size() == value.count);
  if (value.Integers()) HEARTH_CHECK(numbers.has_value());
  if (value.Unsigned() || value.Integer()) HEARTH_CHECK(value.Number().has_value() && !array);
}

// The compiler may not drop the reads that the sanitizer is to see.
void Touch(Bytes bytes) {
  static volatile unsigned sum = 0;
  sum = sum + std::to_integer<unsigned>(bytes.front()) + std::to_integer<unsigned>(bytes.back());
}

void CheckMatrix(const MatView& matrix, Bytes file) {
  if (!matrix.present()) return;
  const BlockShape block = BlockShapeOf(matrix.dtype);
  HEARTH_CHECK(matrix.rows > 0 && matrix.cols > 0 && matrix.cols % block.elems == 0);
  const int64_t row = int64_t{matrix.cols} / block.elems * block.bytes;
  const int64_t last = (int64_t{matrix.rows} - 1) * matrix.row_bytes + row;
  const Bytes all(matrix.data, static_cast<size_t>(last));
  HEARTH_CHECK(Inside(all, file));
  Touch(all);
}

void ReadModel(Bytes bytes) {
  auto file = OpenGgufBytes(bytes);
  if (!file.ok()) return;
  auto model = LoadModel(std::shared_ptr<const WeightFile>(*std::move(file)));
  if (!model.ok()) return;
  for (const MatView& matrix : {model->embedding, model->final_norm, model->head}) {
    CheckMatrix(matrix, bytes);
  }
  for (const LayerWeights& w : model->layers) {
    for (const MatView& matrix : {w.attn_norm, w.q, w.q_bias, w.k, w.k_bias, w.v, w.v_bias,
                                  w.q_norm, w.k_norm, w.attn_out, w.ffn_norm, w.router}) {
      CheckMatrix(matrix, bytes);
    }
    for (const FfnWeights& ffn : w.ffn) {
      for (const MatView& matrix : {ffn.gate, ffn.up, ffn.down}) CheckMatrix(matrix, bytes);
    }
  }
}

}  // namespace
}  // namespace hearth

// Fewer and cheaper records of who allocated what: a third more executions. To look into a finding,
// run it again with ASAN_OPTIONS=malloc_context_size=30, which overrides this.
extern "C" const char* __asan_default_options() {
  return "malloc_context_size=1:quarantine_size_mb=4:detect_stack_use_after_return=0";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  auto gguf = ParseGguf(bytes);
  if (!gguf.ok()) {
    HEARTH_CHECK(!gguf.status().message().empty());
    return 0;
  }
  for (const auto& [key, value] : gguf->metadata.entries()) {
    HEARTH_CHECK(gguf->metadata.Find(key)->bytes.data() == value.bytes.data());
    ReadValue(value, bytes);
  }
  const std::byte* end = bytes.data();
  for (const GgufTensor& tensor : gguf->tensors) {
    HEARTH_CHECK(Inside(tensor.view.bytes, bytes) && tensor.view.bytes.data() >= end);
    Touch(tensor.view.bytes);
    end = tensor.view.bytes.data() + tensor.view.bytes.size();
  }
  ReadModel(bytes);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  using namespace hearth;
  fuzzing::Random random(seed);
  const size_t way = random.Below(8);
  if (way < 4) return LLVMFuzzerMutate(data, size, max_size);
  if (way < 6) {
    fuzzing::OverwriteNumber(data, size, random);
    return size;
  }
  auto gguf = ParseGguf(std::as_bytes(std::span(data, size)));
  if (!gguf.ok()) return LLVMFuzzerMutate(data, size, max_size);
  const std::string bytes = fuzzing::EditFields(fuzzing::TakeApart(*gguf), max_size, random);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
