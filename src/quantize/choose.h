// SPDX-License-Identifier: Apache-2.0
// Which format each tensor of a model gets. Pure: names, shapes and measured errors in, formats
// out.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"
namespace hearth {

enum class Profile : unsigned char {
  kAll,    // every matrix
  kSmall,  // attention and head alone; what the experts have stays
};

struct Target {
  std::string name;  // as it was asked for
  DType dtype = DType::kQ4_K;
  Profile profile = Profile::kAll;
};
// int8, int4, keep, or the name of a format that EncodeBlocks writes; kInvalid names what there is.
Result<Target> ParseTarget(std::string_view word);

struct TensorShape {
  std::string name;
  DType dtype = DType::kF32;
  int rank = 0;
  int64_t cols = 0;
};

struct Choice {
  DType dtype = DType::kF32;
  std::string why;  // for the table; empty: it is the target
};
// By name and shape. A tensor never gets more bits than it has.
Choice ChooseFormat(const TensorShape& tensor, const Target& target);

// `errors` are those of tensors with their choices, none for those that keep their format. Tensors
// that lose much more than most of their format go one format up. Returns how many do.
int RaiseWorst(const std::vector<TensorShape>& tensors,
               const std::vector<std::optional<double>>& errors, std::vector<Choice>& choices);

double BitsPerValue(DType dtype);
// The number that `general.file_type` has for a file mostly of this format; none: it has no name.
std::optional<uint32_t> FileTypeOf(DType dtype);

}  // namespace hearth
