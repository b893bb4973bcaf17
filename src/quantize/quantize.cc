// SPDX-License-Identifier: Apache-2.0
#include "quantize/quantize.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "platform/file.h"
#include "platform/memory.h"
#include "quantize/encode.h"
#include "tensor/quant.h"
#include "weights/gguf_file.h"
#include "weights/gguf_writer.h"

namespace hearth {
namespace {

constexpr int64_t kSampleRows = 64;                 // of a tensor, for the first measurement
constexpr int64_t kSliceValues = int64_t{1} << 22;  // encoded between two writes

// What was lost over what there was, both squared.
struct Loss {
  double error = 0, square = 0;
  void Add(const Loss& other) {
    error += other.error;
    square += other.square;
  }
  double relative() const { return square > 0 ? std::sqrt(error / square) : 0; }
};

struct Rows {
  TensorView tensor;
  int64_t cols = 0, count = 0;
};

Rows RowsOf(const TensorView& tensor) {
  Rows rows{tensor, tensor.rank > 0 ? tensor.shape[static_cast<size_t>(tensor.rank - 1)] : 1, 1};
  for (int i = 0; i + 1 < tensor.rank; ++i) rows.count *= tensor.shape[static_cast<size_t>(i)];
  return rows;
}

int64_t RowBytes(DType dtype, int64_t cols) {
  const BlockShape shape = BlockShapeOf(dtype);
  return cols / shape.elems * shape.bytes;
}

// One row to `out`, and what that loses.
Loss EncodeRow(const Rows& rows, int64_t row, DType to, std::byte* out) {
  std::vector<float> values(static_cast<size_t>(rows.cols)), again(values.size());
  DecodeBlocks(rows.tensor.dtype,
               rows.tensor.bytes.data() + row * RowBytes(rows.tensor.dtype, rows.cols), rows.cols,
               values.data());
  EncodeBlocks(to, values.data(), rows.cols, out);
  DecodeBlocks(to, out, rows.cols, again.data());
  Loss loss;
  for (size_t i = 0; i < values.size(); ++i) {
    const double off = static_cast<double>(values[i]) - again[i];
    loss.error += off * off;
    loss.square += static_cast<double>(values[i]) * values[i];
  }
  return loss;
}

// Rows [first, first + count) with every `step`-th taken. Summed row by row, whoever did them.
Loss EncodeRows(const Rows& rows, int64_t first, int64_t count, int64_t step, DType to,
                ThreadPool& pool, std::vector<std::byte>& out) {
  const int64_t bytes = RowBytes(to, rows.cols);
  out.resize(static_cast<size_t>(count * bytes));
  std::vector<Loss> losses(static_cast<size_t>(count));
  pool.RunBalanced(static_cast<int>(count), 1, [&](Range range, int) {
    for (int i = range.begin; i < range.end; ++i) {
      losses[static_cast<size_t>(i)] =
          EncodeRow(rows, first + i * step, to, out.data() + i * bytes);
    }
  });
  Loss sum;
  for (const Loss& loss : losses) sum.Add(loss);
  return sum;
}

// Where the new file goes.
class Output {
 public:
  virtual ~Output() = default;
  virtual Status Begin(uint64_t num_bytes) = 0;
  virtual Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual Status End() { return Status(); }
};

class FileOutput : public Output {
 public:
  explicit FileOutput(std::string path) : path_(std::move(path)) {}
  Status Begin(uint64_t num_bytes) override {
    HEARTH_ASSIGN(DraftFile draft, DraftFile::Create(path_, num_bytes));
    draft_.emplace(std::move(draft));
    return Status();
  }
  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
    return draft_->WriteAt(offset, bytes);
  }
  Status End() override { return draft_->Keep(); }

 private:
  std::string path_;
  std::optional<DraftFile> draft_;
};

class MemoryOutput : public Output {
 public:
  Status Begin(uint64_t num_bytes) override {
    HEARTH_ASSIGN(LargeBuffer made, LargeBuffer::Make(num_bytes));
    buffer.emplace(std::move(made));
    return Status();
  }
  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
    std::ranges::copy(bytes, buffer->bytes().begin() + static_cast<std::ptrdiff_t>(offset));
    return Status();
  }
  std::optional<LargeBuffer> buffer;
};

class Quantizer {
 public:
  Quantizer(const WeightFile& in, const Target& target, ThreadPool& pool)
      : in_(in), target_(target), pool_(pool) {}

  Status Choose();
  Result<std::vector<TensorOutcome>> Write(Output& output,
                                           const std::function<void(uint64_t, uint64_t)>& progress);

 private:
  bool Changes(size_t i) const { return choices_[i].dtype != shapes_[i].dtype; }
  GgufKeys Keys() const;
  Result<Loss> WriteTensor(size_t i, const GgufOutTensor& out, Output& output) const;

  const WeightFile& in_;
  const Target& target_;
  ThreadPool& pool_;
  std::vector<TensorShape> shapes_;
  std::vector<Choice> choices_;
};

Status Quantizer::Choose() {
  for (const auto& [name, tensor] : in_.tensors()) {
    shapes_.push_back({std::string(name), tensor.dtype, tensor.rank, RowsOf(tensor).cols});
    choices_.push_back(ChooseFormat(shapes_.back(), target_));
  }
  std::vector<std::optional<double>> errors(shapes_.size());
  std::vector<std::byte> scratch;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    if (!Changes(i)) continue;
    const TensorView& tensor = in_.tensors()[i].tensor;
    if (!CanDecode(tensor.dtype)) {
      choices_[i] = {tensor.dtype, "not a weight"};
      continue;
    }
    // Before anything is written: a file with weights that are no numbers is of no use.
    HEARTH_TRY(CheckBlocks(tensor.dtype, tensor.bytes).Within(shapes_[i].name));
    const Rows rows = RowsOf(tensor);
    const int64_t count = std::min(rows.count, kSampleRows);
    errors[i] = EncodeRows(rows, 0, count, rows.count / count, choices_[i].dtype, pool_, scratch)
                    .relative();
  }
  RaiseWorst(shapes_, errors, choices_);
  return Status();
}

GgufKeys Quantizer::Keys() const {
  uint64_t changed = 0, all = 0;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const uint64_t bytes = in_.tensors()[i].tensor.bytes.size();
    all += bytes;
    if (choices_[i].dtype == target_.dtype && Changes(i)) changed += bytes;
  }
  const std::optional<uint32_t> type =
      2 * changed > all ? FileTypeOf(target_.dtype) : std::optional<uint32_t>();
  GgufKeys keys;
  bool has_version = false;
  for (const auto& [key, value] : in_.metadata()->entries()) {
    // Of how the old file was cut, laid out and made.
    if (key.starts_with("split.") || key == "general.alignment" ||
        key.starts_with("quantize.imatrix")) {
      continue;
    }
    if (key == "general.file_type" && type) continue;
    has_version |= key == "general.quantization_version";
    keys.Copy(key, value);
  }
  if (type) keys.AddU32("general.file_type", *type);
  if (!has_version) keys.AddU32("general.quantization_version", 2);
  return keys;
}

Result<Loss> Quantizer::WriteTensor(size_t i, const GgufOutTensor& out, Output& output) const {
  const TensorView& tensor = in_.tensors()[i].tensor;
  if (!Changes(i)) {
    HEARTH_TRY(output.WriteAt(out.offset, tensor.bytes));
    return Loss{};
  }
  const Rows rows = RowsOf(tensor);
  const int64_t at_once = std::max<int64_t>(1, kSliceValues / rows.cols);
  const int64_t row_bytes = RowBytes(out.dtype, rows.cols);
  std::vector<std::byte> slice;
  Loss sum;
  for (int64_t first = 0; first < rows.count; first += at_once) {
    const int64_t count = std::min(at_once, rows.count - first);
    sum.Add(EncodeRows(rows, first, count, 1, out.dtype, pool_, slice));
    // Values that the new format cannot say would have become infinite.
    HEARTH_TRY(CheckBlocks(out.dtype, slice).Within(out.name));
    HEARTH_TRY(output.WriteAt(out.offset + static_cast<uint64_t>(first * row_bytes), slice));
  }
  in_.Release(tensor.bytes, false);
  return sum;
}

Result<std::vector<TensorOutcome>> Quantizer::Write(
    Output& output, const std::function<void(uint64_t, uint64_t)>& progress) {
  std::vector<GgufOutTensor> tensors;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const TensorView& tensor = in_.tensors()[i].tensor;
    const Rows rows = RowsOf(tensor);
    const uint64_t bytes =
        Changes(i) ? static_cast<uint64_t>(rows.count * RowBytes(choices_[i].dtype, rows.cols))
                   : tensor.bytes.size();
    tensors.push_back({shapes_[i].name, choices_[i].dtype, tensor.rank, tensor.shape, bytes, 0});
  }
  const GgufLayout layout = LayOutGguf(Keys(), tensors);
  HEARTH_TRY(output.Begin(layout.file_bytes));
  HEARTH_TRY(output.WriteAt(0, std::as_bytes(std::span(layout.head))));
  std::vector<TensorOutcome> outcomes;
  for (size_t i = 0; i < tensors.size(); ++i) {
    HEARTH_ASSIGN(const Loss loss, WriteTensor(i, tensors[i], output));
    outcomes.push_back({shapes_[i].name, shapes_[i].dtype, choices_[i].dtype,
                        in_.tensors()[i].tensor.bytes.size(), tensors[i].bytes, loss.relative(),
                        choices_[i].why});
    if (progress) progress(tensors[i].offset + tensors[i].bytes, layout.file_bytes);
  }
  // Readers want the padding after the last tensor too.
  const uint64_t end = tensors.empty() ? 0 : tensors.back().offset + tensors.back().bytes;
  if (end > 0 && end < layout.file_bytes) {
    const std::vector<std::byte> zeros(layout.file_bytes - end);
    HEARTH_TRY(output.WriteAt(end, zeros));
  }
  HEARTH_TRY(output.End());
  return outcomes;
}

Status CheckInput(const WeightFile& in) {
  if (in.metadata() != nullptr && in.packed() == nullptr) return Status();
  return Error(Code::kInvalid,
               "expected a GGUF file: quantize reads neither packed files nor safetensors");
}

// Weights in memory, seen as the file that they would be. What was copied from it is given back,
// and is zeros afterwards.
class QuantizedWeights : public WeightFile {
 public:
  QuantizedWeights(LargeBuffer bytes, std::unique_ptr<WeightFile> inner)
      : bytes_(std::move(bytes)), inner_(std::move(inner)) {}
  WeightFormat format() const override { return inner_->format(); }
  Result<TensorView> Find(std::string_view name) const override { return inner_->Find(name); }
  bool Has(std::string_view name) const override { return inner_->Has(name); }
  const std::vector<NamedTensor>& tensors() const override { return inner_->tensors(); }
  uint64_t file_bytes() const override { return inner_->file_bytes(); }
  int num_shards() const override { return 1; }
  const GgufMetadata* metadata() const override { return inner_->metadata(); }
  const Json* config() const override { return inner_->config(); }
  std::vector<ShardBytes> shards() const override { return {{"quantized", bytes_.bytes()}}; }
  void Release(std::span<const std::byte> bytes, bool) const override {
    constexpr uintptr_t kPage = 4096;  // inwards: a neighbour's bytes must stay
    const auto from = reinterpret_cast<uintptr_t>(bytes.data());
    const uintptr_t begin = (from + kPage - 1) / kPage * kPage;
    const uintptr_t end = (from + bytes.size()) / kPage * kPage;
    if (begin < end) {
      static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED));
    }
  }

 private:
  LargeBuffer bytes_;
  std::unique_ptr<WeightFile> inner_;
};

}  // namespace

Result<std::vector<TensorOutcome>> QuantizeFile(
    const WeightFile& in, const Target& target, const std::string& out, ThreadPool& pool,
    const std::function<void(uint64_t done, uint64_t total)>& progress) {
  HEARTH_TRY(CheckInput(in));
  Quantizer quantizer(in, target, pool);
  HEARTH_TRY(quantizer.Choose());
  FileOutput output(out);
  return quantizer.Write(output, progress);
}

Result<QuantizedModel> QuantizeToMemory(
    const WeightFile& in, const Target& target, ThreadPool& pool,
    const std::function<void(uint64_t done, uint64_t total)>& progress) {
  HEARTH_TRY(CheckInput(in));
  for (const auto& [name, tensor] : in.tensors()) {
    if (tensor.rank < 2 || BitsPerValue(tensor.dtype) >= 16) continue;
    return Error(Code::kInvalid,
                 "%.*s is %s already; only weights in F32, F16 or BF16 are quantized while loading",
                 static_cast<int>(name.size()), name.data(), NameOf(tensor.dtype));
  }
  Quantizer quantizer(in, target, pool);
  HEARTH_TRY(quantizer.Choose());
  MemoryOutput output;
  QuantizedModel out;
  HEARTH_ASSIGN(out.outcomes, quantizer.Write(output, progress));
  HEARTH_ASSIGN(std::unique_ptr<WeightFile> inner, OpenGgufBytes(output.buffer->bytes()));
  out.file = std::make_unique<QuantizedWeights>(*std::move(output.buffer), std::move(inner));
  return out;
}

}  // namespace hearth
