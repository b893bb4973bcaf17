// SPDX-License-Identifier: Apache-2.0
// Weights on several memory nodes: the same values, in equal parts.
#include "cpu/packed_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cpu/pack.h"
#include "cpu/panels.h"
#include "testing/data.h"
#include "testing/loaded_model.h"
#include "testing/temp_dir.h"
#include "weights/packed_file.h"

namespace hearth {
namespace {

std::vector<PackedMatrix> MatricesOf(const PackedModel& model) {
  std::vector<PackedMatrix> all = {model.embedding(), model.head()};
  for (const PackedLayer& layer : model.layers()) {
    for (const PackedMatrix* matrix : {&layer.q, &layer.k, &layer.v, &layer.out, &layer.router}) {
      all.push_back(*matrix);
    }
    for (const PackedFfn& ffn : layer.ffn) {
      for (const PackedMatrix* matrix : {&ffn.gate, &ffn.up, &ffn.down}) all.push_back(*matrix);
    }
  }
  std::erase_if(all, [](const PackedMatrix& matrix) { return matrix.rows == 0; });
  return all;
}

std::vector<float> RowOf(const PackedMatrix& matrix, int row, const WorkerPlan& plan) {
  int node = 0;
  while (plan.edge(NumPanels(matrix.rows), node + 1) <= row / kPanelRows) ++node;
  std::vector<float> values(static_cast<size_t>(matrix.cols));
  UnpackRow(PartOn(matrix, node), row, values.data());
  return values;
}

void ExpectSame(const PackedModel& one, const PackedModel& many, const WorkerPlan& plan) {
  const std::vector<PackedMatrix> a = MatricesOf(one), b = MatricesOf(many);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NE(b[i].nodes, nullptr);
    ASSERT_EQ(a[i].num_spills, b[i].num_spills);
    const WorkerPlan single{.cpus = {}, .first = {0, 1}, .memory = {}};
    for (int row = 0; row < a[i].rows; ++row) {
      ASSERT_EQ(RowOf(a[i], row, single), RowOf(b[i], row, plan))
          << "matrix " << i << ", row " << row;
    }
  }
}

std::unique_ptr<PackedModel> Made(const Model& model, ThreadPool& pool) {
  Result<std::unique_ptr<PackedModel>> made = PackedModel::Make(model, pool, nullptr);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}

TEST(PackedModel, NodesHoldTheSameValues) {
  for (const char* name : {"golden/tiny-oss-mxfp4.gguf", "golden/tiny-oss-f32.gguf"}) {
    const std::string path = testing::DataPath(name);
    HEARTH_SKIP_WITHOUT(path);
    ThreadPool one(2);
    const auto packed = Made(testing::LoadedModel(path), one);
    for (const int nodes : {2, 3}) {
      ThreadPool pool(PlanWorkersHere(nodes + 1, nodes));
      ASSERT_EQ(pool.plan().num_nodes(), nodes);
      ExpectSame(*packed, *Made(testing::LoadedModel(path), pool), pool.plan());
    }
  }
}

TEST(PackedModel, APackedFileIsSpreadOverNodes) {
  const std::string path = testing::DataPath("golden/tiny-oss-mxfp4.gguf");
  HEARTH_SKIP_WITHOUT(path);
  const testing::TempDir dir;
  const Model model = testing::LoadedModel(path);
  ThreadPool one(2);
  const auto packed = Made(model, one);
  Result<std::vector<PackedSource>> sources = SourcesOf(*model.file, {});
  ASSERT_TRUE(sources.ok()) << sources.status().message();
  const std::string spills = packed->WriteSpills();
  const std::string file = dir.Path("model.hearth");
  ASSERT_TRUE(
      WritePackedFile(file, {kPackedLayout, *sources, packed->weights(), spills}, nullptr).ok());
  ThreadPool two(PlanWorkersHere(2, 2));
  ExpectSame(*packed, *Made(testing::LoadedModel(file), two), two.plan());
}

// gpt-oss-20b's shapes; nothing is read, so the data may be anywhere.
Model BigModel() {
  static const std::byte nowhere{};
  const auto matrix = [](int rows, int cols, DType dtype) {
    MatView view;
    view.data = &nowhere;
    view.rows = rows;
    view.cols = cols;
    view.dtype = dtype;
    const BlockShape shape = BlockShapeOf(dtype);
    view.row_bytes = int64_t{cols} / shape.elems * shape.bytes;
    view.col_bytes = shape.elems == 1 ? shape.bytes : 0;
    return view;
  };
  constexpr int kWidth = 2880;
  Model model;
  model.embedding = model.head = matrix(201088, kWidth, DType::kQ8_0);
  model.final_norm = matrix(1, kWidth, DType::kF32);
  for (int i = 0; i < 24; ++i) {
    LayerWeights& layer = model.layers.emplace_back();
    layer.attn_norm = layer.ffn_norm = matrix(1, kWidth, DType::kF32);
    layer.q = matrix(4096, kWidth, DType::kQ8_0);
    layer.k = layer.v = matrix(512, kWidth, DType::kQ8_0);
    layer.attn_out = matrix(kWidth, 4096, DType::kQ8_0);
    layer.router = matrix(32, kWidth, DType::kF32);
    for (int expert = 0; expert < 32; ++expert) {
      FfnWeights& ffn = layer.ffn.emplace_back();
      ffn.gate = ffn.up = ffn.down = matrix(kWidth, kWidth, DType::kMxfp4);
    }
  }
  return model;
}

TEST(PackedModel, NodesHoldEqualBytes) {
  const Model model = BigModel();
  for (const char* machine :
       {"package:2 numa:1 core:8 pu:1", "package:2 numa:1 core:16 pu:1",
        "package:4 numa:1 core:12 pu:1", "package:2 group:2 numa:1 core:4 pu:1",
        "package:4 numa:1 core:192 pu:2"}) {
    const std::vector<CpuPlace> cpus = DescribedCpus(machine);
    std::vector<int> all;
    int cores = 0;
    for (const CpuPlace& place : cpus) {
      all.push_back(place.cpu);
      cores = std::max(cores, place.core + 1);
    }
    const WorkerPlan plan = PlanWorkers(cpus, all, cores, kNumaAuto);
    ASSERT_GT(plan.num_nodes(), 1);
    const std::vector<int64_t> regions = PackedModel::RegionsFor(model, plan);
    const double fair = static_cast<double>(regions.back()) / plan.num_nodes();
    EXPECT_GE(regions.back(), PackedModel::BytesFor(model));
    for (size_t k = 0; k + 1 < regions.size(); ++k) {
      const auto bytes = static_cast<double>(regions[k + 1] - regions[k]);
      EXPECT_LT(std::abs(bytes / fair - 1), 0.02) << machine << ", node " << k;
    }
  }
}

}  // namespace
}  // namespace hearth
