// SPDX-License-Identifier: Apache-2.0
// Experts that come from disk give the bits of those in memory, however few have room; and what is
// wrong with the file ends the step that meets it, nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "bitwise_runs.h"
#include "cpu/packed_model.h"
#include "testing/data.h"
#include "testing/temp_dir.h"
#include "weights/packed_file.h"

namespace hearth {
namespace {

// Packs a golden model and returns where.
std::string PackedPath(const testing::TempDir& dir, const std::string& name) {
  const Model model = testing::LoadedModel(testing::DataPath("golden/" + name + ".gguf"));
  ThreadPool pool(2);
  Result<std::unique_ptr<PackedModel>> packed = PackedModel::Make(model, pool, nullptr);
  EXPECT_TRUE(packed.ok()) << packed.status().message();
  Result<std::vector<PackedSource>> sources = SourcesOf(*model.file, {});
  const std::string spills = (*packed)->WriteSpills(), path = dir.Path(name + ".hearth");
  const PackedContent content{kPackedLayout, *sources, (*packed)->weights(), spills};
  EXPECT_TRUE(WritePackedFile(path, content, nullptr).ok());
  return path;
}

TEST(Paging, BitsAreThoseOfExpertsInMemory) {
  for (const char* name : {"tiny-oss-mxfp4", "tiny-oss-f32"}) {
    const testing::TempDir dir;
    testing::BitwiseRuns runs(PackedPath(dir, name), 6, 60, 20261117, KvCode::kInt16);
    const PackedModel::PagedSizes sizes = PackedModel::PagedSizesOf(runs.model());
    ASSERT_GT(sizes.experts, 0);
    int done = 0;
    for (const int each : {1, 2, 3, sizes.experts / sizes.layers}) {
      const int64_t bytes = each * sizes.layers * sizes.frame;
      const auto meter = std::make_shared<PagingMeter>();
      runs.PageExperts(bytes, meter);
      for (const Isa isa : SupportedIsas()) {
        for (const int threads : {1, 3}) {
          done += runs.RunBatch(isa, threads, /*num_nodes=*/threads == 3 ? 2 : 1, 4);
          const PagingCounts counts = meter->get();
          EXPECT_GT(counts.needed, 0u);
          EXPECT_EQ(counts.errors, 0u);
          EXPECT_LE(counts.resident_bytes, bytes);
          EXPECT_LE(counts.most_bytes, bytes);
        }
      }
      // With little room experts come again and again; a single run may need each but once.
      const PagingCounts counts = meter->get();
      if (each == 1) {
        EXPECT_GT(counts.bytes_read, uint64_t(counts.expert_bytes) * sizes.experts);
      }
    }
    std::printf("%s: %d sequences with %d experts of %d layers on disk, 0 differing bits\n", name,
                done, sizes.experts, sizes.layers);
  }
}

class PagedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = PackedPath(dir_, "tiny-oss-mxfp4");
    const Model model = testing::LoadedModel(path_);
    const PackedModel::PagedSizes sizes = PackedModel::PagedSizesOf(model);
    CpuOptions options;
    options.kv_blocks = {4};
    options.expert_bytes = sizes.layers * sizes.frame;
    options.paging = meter_;
    Result<std::unique_ptr<Backend>> made = MakeCpuBackend(model, options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    backend_ = *std::move(made);
  }
  Status Run() {
    StepPlan plan;
    const BlockTable table{BlockId{0}};
    const std::vector<BlockTable> tables(backend_->kv_layout().groups.size(), table);
    for (int t = 0; t < 8; ++t) plan.tokens.push_back(t + 1);
    SeqSlice slice;
    slice.count = 8;
    slice.num_rows = plan.num_rows = 1;
    slice.tables = tables;
    plan.slices.push_back(slice);
    return RunStep(*backend_, plan).status();
  }
  const testing::TempDir dir_;
  std::string path_;
  const std::shared_ptr<PagingMeter> meter_ = std::make_shared<PagingMeter>();
  std::unique_ptr<Backend> backend_;
};

TEST_F(PagedFile, ATruncatedFileEndsTheStepAndNoMore) {
  ASSERT_TRUE(Run().ok());
  const std::string kept = dir_.Path("kept");
  std::filesystem::copy_file(path_, kept);
  std::filesystem::resize_file(path_, 4096);
  const Status cut = Run();
  EXPECT_EQ(cut.code(), Code::kCorrupt);
  EXPECT_THAT(cut.message(), ::testing::HasSubstr("the file ends at byte 4096"));
  EXPECT_GT(meter_->get().errors, 0u);
  // The same file again, in place: the next step finds everything.
  std::filesystem::copy_file(kept, path_, std::filesystem::copy_options::overwrite_existing);
  const Status again = Run();
  EXPECT_TRUE(again.ok()) << again.message();
}

TEST_F(PagedFile, ChangedBytesAreNoticed) {
  ASSERT_TRUE(Run().ok());
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path_));
  const std::string rot(4096, 'x');
  for (std::streamoff at = std::streamoff{2} << 20; at + 4096 < size; at += 4096) {
    file.seekp(at);
    file.write(rot.data(), static_cast<std::streamsize>(rot.size()));
  }
  file.close();
  const Status changed = Run();
  EXPECT_EQ(changed.code(), Code::kCorrupt);
  EXPECT_THAT(changed.message(), ::testing::HasSubstr("are not those that were loaded"));
}

TEST(Paging, RefusesWhatItCannotDo) {
  const testing::TempDir dir;
  CpuOptions options;
  options.kv_blocks = {4};
  options.expert_bytes = 1 << 30;
  const Model plain = testing::LoadedModel(testing::DataPath("golden/tiny-oss-mxfp4.gguf"));
  const Status unpacked = MakeCpuBackend(plain, options).status();
  EXPECT_EQ(unpacked.code(), Code::kUnsupported);
  EXPECT_THAT(unpacked.message(), ::testing::HasSubstr("run `hearth pack`"));
  const Model packed = testing::LoadedModel(PackedPath(dir, "tiny-oss-mxfp4"));
  options.expert_bytes = 4096;
  const Status small = MakeCpuBackend(packed, options).status();
  EXPECT_EQ(small.code(), Code::kInvalid);
  EXPECT_THAT(small.message(), ::testing::HasSubstr("needs room for one of"));
}

}  // namespace
}  // namespace hearth
