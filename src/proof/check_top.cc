// SPDX-License-Identifier: Apache-2.0
// The largest logits of rows, in as many launches as a vocabulary takes.
#include <limits>

#include "backend/row_results.h"
#include "cuda/top.h"
#include "proof/check_parts.h"

namespace hearth::cuda {
namespace {

// What the backend does with rows in host memory.
std::vector<TokenLogit> OnCpu(const std::vector<float>& row, int top) {
  StepPlan plan;
  plan.num_rows = 1;
  plan.asks = {{RowAsk::Kind::kTop, top}};
  RowResults results;
  const std::span<const RowResult> found = results.Fill(plan, row, row.size());
  return {found[0].top.begin(), found[0].top.end()};
}

// Few different values, so that many are equal; zeros of both signs; rows that are no numbers.
std::vector<float> Logits(Rng& rng, int n, int row) {
  std::vector<float> logits = rng.Normals(n, 4.0f);
  for (float& logit : logits) {
    if (row % 2 == 0) logit = static_cast<float>(rng.Int(-3, 3));
    if (rng.OneIn(50)) logit = rng.OneIn(2) ? 0.0f : -0.0f;
    if (rng.OneIn(90)) logit = -std::numeric_limits<float>::infinity();
    if (row == 3) logit = std::nanf("");
  }
  if (row == 4) logits[0] = std::nanf("");  // the first stands for all
  return logits;
}

std::string CheckOneTop(Machine& machine, int n, int most, Rng& rng) {
  const std::vector<int32_t> tops = {most, 1, 0, most, (most + 1) / 2};
  const auto rows = static_cast<int>(tops.size());
  const int64_t stride = n + 16;
  DeviceMemory memory(machine);
  std::vector<float> logits(static_cast<size_t>(stride * rows), 1e9f);
  for (int r = 0; r < rows; ++r) {
    const std::vector<float> row = Logits(rng, n, r);
    std::copy(row.begin(), row.end(), logits.begin() + r * stride);
  }
  TopArgs args{};
  args.logits = memory.Copy(logits);
  args.tops = memory.Copy(tops);
  args.stride = stride;
  args.n = n;
  args.most = most;
  for (int chunks = 0; chunks != 1;) {
    chunks = TopChunks(args.n);
    args.to_stride = int64_t{chunks} * most;
    args.to = memory.Make<Candidate>(static_cast<size_t>(args.to_stride * rows));
    RunKernel(machine, "hearth_top", {chunks, rows, 1, kTopThreads, TopSharedBytes()}, args,
              memory);
    args.logits = nullptr;
    args.from = args.to;
    args.stride = args.to_stride;
    args.n = static_cast<int32_t>(args.to_stride);
  }
  for (int r = 0; r < rows; ++r) {
    const int top = tops[static_cast<size_t>(r)];
    if (top == 0) continue;
    const auto first = logits.begin() + r * stride;
    const std::vector<TokenLogit> want = OnCpu({first, first + n}, top);
    CountCompared(2 * top);
    for (int i = 0; i < top; ++i) {
      const TokenLogit& one = want[static_cast<size_t>(i)];
      const Candidate& got = args.to[r * most + i];
      if (one.token == got.token && proof::SameFloat(one.logit, got.logit)) continue;
      return std::to_string(i) + " of the " + std::to_string(top) + " largest of " +
             std::to_string(n) + " in row " + std::to_string(r) + ": want token " +
             std::to_string(one.token) + ", got " + std::to_string(got.token);
    }
  }
  return "";
}

}  // namespace

std::string CheckTop(Machine& machine, CaseGrid grid) {
  Rng rng(141);
  std::vector<std::pair<int, int>> cases = {{48, 5}, {kTopChunk + 70, 9}};
  if (grid >= CaseGrid::kSmall) cases.insert(cases.end(), {{kTopChunk, 1}, {3 * kTopChunk, 64}});
  if (grid == CaseGrid::kFull) cases.insert(cases.end(), {{70 * kTopChunk, 64}, {201088, 20}});
  for (const auto& [n, most] : cases) {
    if (std::string wrong = CheckOneTop(machine, n, most, rng); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace hearth::cuda
