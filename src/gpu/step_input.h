// SPDX-License-Identifier: Apache-2.0
// What the device must know about a step, laid out on the host and copied in one piece: tokens,
// positions, block tables, angles, and which rows are wanted.
#pragma once
#include <vector>

#include "backend/backend.h"
#include "cuda/args.h"
#include "gpu/device.h"
#include "gpu/step_graphs.h"
#include "model/model.h"
namespace hearth::cuda {

// Tokens that attend in one launch, so that what spans leave for merging has a bound.
struct AttendChunk {
  int first = 0, count = 0, max_spans = 0;
};

// How many of the largest logits a row is asked for; 0: for all.
int TopOf(const RowAsk& ask);

// Thread: as its device, which outlives it.
class StepInput {
 public:
  StepInput(Device& device, const ModelSpec& spec, const KvLayout& kv, int max_tokens);
  // Lays out a checked plan; kExhausted when it needs more memory and there is none. Nothing may be
  // under way that reads an earlier step's.
  Status Build(const StepPlan& plan);
  // Asks for the copy.
  Status Send();
  // One token and one row of each sequence, as when replies are written: steps of one shape have
  // the same launches.
  bool is_decode = false;
  StepShape shape() const;

  int num_tokens = 0, num_rows = 0;
  int most_top = 0;  // that any row is asked for; 0: all want logits
  // On the device, once sent.
  const int32_t* tokens() const { return to_.at<const int32_t>(tokens_at_); }
  const int32_t* rows() const { return to_.at<const int32_t>(rows_at_); }
  // Of each row, how many of the largest logits are wanted; 0: all logits.
  const int32_t* tops() const { return to_.at<const int32_t>(tops_at_); }
  const float* cos() const { return to_.at<const float>(cos_at_); }
  const float* sin() const { return to_.at<const float>(sin_at_); }
  const TokenPlace* places(size_t group) const {
    return to_.at<const TokenPlace>(groups_[group].places_at);
  }
  // Of all groups, one after the other; places count from its start.
  const int32_t* tables() const { return to_.at<const int32_t>(tables_at_); }
  const std::vector<AttendChunk>& chunks(size_t group) const { return groups_[group].chunks; }

  // Floats that the spans of a chunk leave for merging, at most, in steps of so many tokens.
  static int64_t PartFloats(const ModelSpec& spec, int max_tokens);

 private:
  struct Group {
    int window = 0;
    int64_t places_at = 0;
    std::vector<TokenPlace> places;
    std::vector<AttendChunk> chunks;
  };
  void PlaceTokens(const StepPlan& plan, size_t index);
  void CutChunks(Group& group) const;
  void Lay(const StepPlan& plan);
  void Write(const StepPlan& plan);

  Device& device_;
  const ModelSpec& spec_;
  const int block_tokens_;
  const int64_t part_floats_;
  std::vector<double> frequencies_;
  std::vector<Group> groups_;
  std::vector<int32_t> tables_;
  PinnedBlock from_;
  DeviceBlock to_;
  int64_t num_moved_ = 0;  // times that they were replaced by larger ones
  int64_t used_ = 0;
  int64_t tokens_at_ = 0, rows_at_ = 0, tops_at_ = 0, cos_at_ = 0, sin_at_ = 0, tables_at_ = 0;
};

}  // namespace hearth::cuda
