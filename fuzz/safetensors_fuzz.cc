// SPDX-License-Identifier: Apache-2.0
// ParseSafetensors on anything. The mutator knows the container: it writes sound files with a few
// faults, or edits the numbers, types and names of a header, and keeps the length prefix right most
// of the time; plain byte flips would almost never get past the JSON.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "weights/safetensors.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace hearth {
namespace {

// What a caller relies on once a file was accepted.
void CheckAccepted(const Safetensors& parsed, std::span<const std::byte> file) {
  size_t covered = 0;
  [[maybe_unused]] volatile unsigned sum = 0;
  const std::byte* end = file.data() + 8;
  for (const SafetensorsTensor& tensor : parsed.tensors) {
    const TensorView& view = tensor.view;
    HEARTH_CHECK(!tensor.name.empty());
    HEARTH_CHECK(view.rank >= 0 && view.rank <= TensorView::kMaxRank);
    HEARTH_CHECK(view.bytes.data() >= end && view.bytes.data() <= file.data() + file.size());
    end = view.bytes.data() + view.bytes.size();
    HEARTH_CHECK(end <= file.data() + file.size());
    auto bytes = static_cast<unsigned __int128>(BlockShapeOf(view.dtype).bytes);
    for (int i = 0; i < view.rank; ++i) {
      HEARTH_CHECK(view.shape[static_cast<size_t>(i)] >= 0);
      bytes *= static_cast<uint64_t>(view.shape[static_cast<size_t>(i)]);
    }
    HEARTH_CHECK(bytes == view.bytes.size());
    covered += view.bytes.size();
    if (view.bytes.empty()) continue;
    sum = sum + std::to_integer<unsigned>(view.bytes.front());
    sum = sum + std::to_integer<unsigned>(view.bytes.back());
  }
  uint64_t header_bytes;
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  HEARTH_CHECK(8 + header_bytes + covered == file.size());
}

// Half of the time would go into counting the mutator's own branches, which nobody asks for.
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

class Mutator {
 public:
  Mutator(unsigned seed, size_t max_size) : random_(seed), max_size_(max_size) {}

  std::string Mutate(std::string file) {
    if (file.size() < 8 || Chance(8)) return Fresh();
    uint64_t header_bytes;
    std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
    header_bytes = std::min<uint64_t>(header_bytes, file.size() - 8);
    std::string header = file.substr(8, header_bytes);
    std::string data = file.substr(8 + header_bytes);
    for (size_t edits = 1 + Below(3); edits > 0; --edits) Edit(header, data);
    // Four entries show what forty do, ten times as often.
    if (header.size() > kUsualHeaderBytes && !Chance(32)) return Fresh();
    return Container(header, data);
  }

 private:
  static constexpr size_t kUsualHeaderBytes = 256;

  size_t Below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  bool Chance(size_t one_in) { return Below(one_in) == 0; }
  template <class T, size_t N>
  const T& Pick(const T (&choices)[N]) {
    return choices[Below(N)];
  }

  std::string Container(const std::string& header, const std::string& data) {
    uint64_t length = header.size();
    if (Chance(32)) length += Below(5) - 2;
    if (Chance(256)) length = uint64_t{1} << Below(64);
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    return file.append(header).append(data);
  }

  std::string Number(uint64_t near) {
    static constexpr const char* kEdges[] = {"-1",
                                             "1.5",
                                             "1e3",
                                             "-0",
                                             "2147483648",
                                             "4294967296",
                                             "4611686018427387904",
                                             "9223372036854775807",
                                             "9223372036854775808",
                                             "18446744073709551615",
                                             "18446744073709551616",
                                             "null",
                                             "[]",
                                             "\"1\""};
    if (Chance(6)) return Pick(kEdges);
    return Chance(2) ? std::to_string(near + Below(5) - 2) : std::to_string(Below(20));
  }

  struct Type {
    const char* name;
    uint64_t bytes;
  };
  const Type& AnyType() {
    static constexpr Type kTypes[] = {
        {"U8", 1},   {"I8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F16", 2},
        {"BF16", 2}, {"I16", 2}, {"U16", 2},  {"F32", 4},     {"I32", 4},     {"U32", 4},
        {"F64", 8},  {"I64", 8}, {"U64", 8},  {"F4", 1},      {"Q8_0", 1},    {"", 1}};
    // The last three are unknown to the format, so they come rarely.
    return kTypes[Below(Chance(16) ? std::size(kTypes) : std::size(kTypes) - 3)];
  }

  std::string Entry(const std::string& name, const Type& type, const std::string& shape,
                    const std::string& begin, const std::string& end) {
    std::string text = "\"" + name + "\":{";
    text += "\"dtype\":\"" + std::string(type.name) + "\",\"shape\":[" + shape + "],";
    text += "\"data_offsets\":[" + begin + "," + end + "]}";
    return text;
  }

  // A sound file in which every number and type has a small chance of being another.
  std::string Fresh() {
    const size_t faults_one_in = Chance(2) ? 1000000 : 24;
    std::string header = "{", data;
    if (Chance(4)) header += R"("__metadata__":{"format":"pt"})";
    for (size_t tensors = Below(Chance(8) ? 6 : 4); tensors > 0; --tensors) {
      const Type& type = AnyType();
      uint64_t bytes = type.bytes;
      std::string shape;
      for (size_t rank = Below(Chance(16) ? 6 : 5); rank > 0; --rank) {
        const uint64_t dim = Below(4);
        bytes *= dim;
        shape.append(shape.empty() ? "" : ",");
        shape += Chance(faults_one_in) ? Number(dim) : std::to_string(dim);
      }
      const uint64_t begin = data.size(), end = begin + bytes;
      data.append(bytes, 'd');
      if (header.size() > 1) header += ",";
      header += Entry(std::string(1, static_cast<char>('a' + Below(Chance(8) ? 3 : 26))), type,
                      shape, Chance(faults_one_in) ? Number(begin) : std::to_string(begin),
                      Chance(faults_one_in) ? Number(end) : std::to_string(end));
    }
    if (Chance(faults_one_in)) data.resize(data.size() + Below(3));
    return Container(header + "}", data);
  }

  void Edit(std::string& header, std::string& data) {
    switch (Below(8)) {
      case 0:
      case 1:
      case 2:
        return EditNumber(header);
      case 3:
        return EditType(header);
      case 4:
        return CopyPiece(header);
      case 5:
        data.resize(Below(2 * data.size() + 4));
        return;
      case 6:
        return EditName(header);
      default:
        return EditBytes(header);
    }
  }

  void EditNumber(std::string& header) {
    const size_t at = header.find_first_of("0123456789", Below(header.size()));
    if (at == std::string::npos) return;
    size_t length = 0;
    uint64_t value = 0;
    while (at + length < header.size() && header[at + length] >= '0' &&
           header[at + length] <= '9') {
      // Digits of a name or a number too long wrap; any value will do.
      value = static_cast<uint64_t>(static_cast<unsigned __int128>(value) * 10) +
              static_cast<uint64_t>(header[at + length++] - '0');
    }
    header.replace(at, length, Number(value));
  }

  void EditType(std::string& header) {
    constexpr std::string_view kField = "\"dtype\":\"";
    const size_t at = header.find(kField, Below(header.size()));
    if (at == std::string::npos) return;
    const size_t begin = at + kField.size();
    const size_t end = header.find('"', begin);
    if (end != std::string::npos) header.replace(begin, end - begin, AnyType().name);
  }

  void EditName(std::string& header) {
    static constexpr const char* kNames[] = {"dtype", "shape",   "data_offsets", "__metadata__", "",
                                             "a",     "\\u0061", "\\ud800",      "\xff"};
    const size_t begin = header.find('"', Below(header.size()));
    if (begin == std::string::npos) return;
    const size_t end = header.find('"', begin + 1);
    if (end != std::string::npos) header.replace(begin + 1, end - begin - 1, Pick(kNames));
  }

  // From one comma or brace to another: whole entries, fields and numbers twice or gone.
  void CopyPiece(std::string& header) {
    const size_t begin = header.find_first_of(",{}[]", Below(header.size()));
    if (begin == std::string::npos) return;
    const size_t end = header.find_first_of(",{}[]", begin + 1 + Below(64));
    if (end == std::string::npos) return;
    const std::string piece = header.substr(begin, end - begin);
    if (Chance(2)) {
      header.erase(begin, piece.size());
    } else {
      header.insert(end, piece);
    }
  }

  void EditBytes(std::string& header) {
    std::vector<uint8_t> bytes(header.begin(), header.end());
    const size_t size = bytes.size();
    bytes.resize(std::max(size + 16, max_size_ / 2));
    bytes.resize(LLVMFuzzerMutate(bytes.data(), size, bytes.size()));
    header.assign(bytes.begin(), bytes.end());
  }

  std::minstd_rand random_;
  const size_t max_size_;
};

#pragma clang attribute pop

}  // namespace
}  // namespace hearth

// Deep stacks for every allocation and 256 MB of freed memory kept apart cost half the runs; a tree
// of a few KB is well inside 8 MB.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "malloc_context_size=3:quarantine_size_mb=8";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  auto parsed = hearth::ParseSafetensors(file);
  if (parsed.ok()) {
    hearth::CheckAccepted(*parsed, file);
  } else {
    const hearth::Status refusal = parsed.status();
    HEARTH_CHECK(refusal.code() == hearth::Code::kCorrupt ||
                 refusal.code() == hearth::Code::kUnsupported);
    for (const char c : refusal.message()) HEARTH_CHECK(c >= 0x20 && c < 0x7f);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  // Some plain flips, for what the container's shape would hide.
  if (seed % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  hearth::Mutator mutator(seed, max_size);
  const std::string file = mutator.Mutate(std::string(reinterpret_cast<const char*>(data), size));
  if (file.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, file.data(), file.size());
  return file.size();
}
