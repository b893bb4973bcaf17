// SPDX-License-Identifier: Apache-2.0
#include "weights/gguf_writer.h"

#include "base/check.h"

namespace hearth {
namespace {

constexpr uint64_t kAlignment = 32;  // the format's own, where no key names another

template <class T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutString(std::string& out, std::string_view text) {
  Put(out, static_cast<uint64_t>(text.size()));
  out += text;
}

uint64_t Aligned(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void GgufKeys::Begin(std::string_view key, GgufType type) {
  PutString(bytes_, key);
  Put(bytes_, static_cast<uint32_t>(type));
  ++count_;
}

void GgufKeys::Copy(std::string_view key, const GgufValue& value) {
  Begin(key, value.type);
  if (value.type == GgufType::kArray) {
    Put(bytes_, static_cast<uint32_t>(value.element));
    Put(bytes_, value.count);
  }
  bytes_.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

void GgufKeys::AddU32(std::string_view key, uint32_t value) {
  Begin(key, GgufType::kU32);
  Put(bytes_, value);
}

void GgufKeys::AddString(std::string_view key, std::string_view value) {
  Begin(key, GgufType::kString);
  PutString(bytes_, value);
}

GgufLayout LayOutGguf(const GgufKeys& keys, std::span<GgufOutTensor> tensors) {
  GgufLayout layout;
  std::string& head = layout.head;
  head = "GGUF";
  Put(head, uint32_t{3});
  Put(head, static_cast<uint64_t>(tensors.size()));
  Put(head, keys.count());
  head += keys.bytes();
  uint64_t relative = 0;
  for (GgufOutTensor& tensor : tensors) {
    PutString(head, tensor.name);
    Put(head, static_cast<uint32_t>(tensor.rank));
    // The file has them innermost first.
    for (int i = tensor.rank - 1; i >= 0; --i) {
      Put(head, static_cast<uint64_t>(tensor.shape[static_cast<size_t>(i)]));
    }
    const std::optional<uint32_t> id = GgufTypeId(tensor.dtype);
    HEARTH_CHECK(id.has_value());
    Put(head, *id);
    Put(head, relative);
    tensor.offset = relative;
    relative = Aligned(relative + tensor.bytes);
  }
  head.resize(Aligned(head.size()));
  for (GgufOutTensor& tensor : tensors) tensor.offset += head.size();
  layout.file_bytes = head.size() + relative;
  return layout;
}

}  // namespace hearth
