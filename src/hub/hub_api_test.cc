// SPDX-License-Identifier: Apache-2.0
#include "hub/hub_api.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

const std::string kSha(64, 'a'), kBlob(40, 'b'), kCommit(40, 'c');

std::string Listing(const std::string& siblings) {
  return R"({"id": "a/b", "sha": ")" + kCommit +
         R"(", "gated": false, "tags": ["gguf", "license:apache-2.0"], "siblings": [)" + siblings +
         "]}";
}

TEST(HubApi, AListing) {
  Result<HubRepo> repo = ParseListing(
      Listing(R"({"rfilename": "sub/m.gguf", "size": 134, "blobId": ")" + kBlob +
              R"(", "lfs": {"sha256": ")" + kSha + R"(", "size": 12000000000, "pointerSize": 134}},
               {"rfilename": "config.json", "size": 7, "blobId": ")" +
              kBlob + R"("},
               {"rfilename": "odd", "size": 3, "blobId": "?"})"));
  ASSERT_TRUE(repo.ok()) << repo.status().message();
  EXPECT_EQ(repo->commit, kCommit);
  EXPECT_EQ(repo->licence, "apache-2.0");
  ASSERT_EQ(repo->files.size(), 3u);
  EXPECT_EQ(repo->files[0].bytes, 12000000000u);
  EXPECT_EQ(repo->files[0].digest.text(), "sha256:" + kSha);
  EXPECT_EQ(repo->files[1].digest.text(), "git:" + kBlob);
  EXPECT_EQ(repo->files[2].digest.kind, DigestKind::kNone);
}

TEST(HubApi, ListingsThatLeadElsewhereAreRefused) {
  for (const char* name : {"../x", "/etc/passwd", "a//b", "a/../b", "", "a/", "."}) {
    const std::string sibling = R"({"rfilename": ")" + std::string(name) + R"(", "size": 1})";
    EXPECT_EQ(ParseListing(Listing(sibling)).status().code(), Code::kCorrupt) << name;
  }
  for (const char* sibling :
       {"{}", "7", R"({"rfilename": "x"})", R"({"rfilename": "x", "size": -1})",
        R"({"rfilename": "x", "size": 99999999999999999})",
        R"({"rfilename": "a\nb", "size": 1})"}) {
    EXPECT_EQ(ParseListing(Listing(sibling)).status().code(), Code::kCorrupt) << sibling;
  }
  for (const char* text : {"", "[]", "{}", R"({"sha": "main", "siblings": []})", "<html>"}) {
    EXPECT_FALSE(ParseListing(text).ok()) << text;
  }
}

TEST(HubApi, Urls) {
  const HubAddress hub{"https://h", ""};
  EXPECT_EQ(ListingUrl(hub, "a/b", "refs/pr/1"),
            "https://h/api/models/a/b/revision/refs%2Fpr%2F1?blobs=true");
  EXPECT_EQ(FileUrl(hub, "a/b", "c0", "x y/z#1.gguf"), "https://h/a/b/resolve/c0/x%20y/z%231.gguf");
}

TEST(HubApi, UrlsOfTheHubAreReferences) {
  const HubAddress hub{"https://mirror", ""};
  const auto of = [&](const char* url) {
    const ModelReference reference =
        HubReferenceOf(hub, {.kind = ModelReference::Kind::kUrl, .url = url});
    return reference.kind == ModelReference::Kind::kUrl
               ? "url"
               : reference.repo + "@" + reference.revision + ":" + reference.selector;
  };
  EXPECT_EQ(of("https://huggingface.co/a/b/resolve/main/x.gguf?download=true"), "a/b@main:x.gguf");
  EXPECT_EQ(of("https://mirror/a/b/blob/v1/sub/x.gguf"), "a/b@v1:sub/x.gguf");
  EXPECT_EQ(of("https://huggingface.co/a/b"), "a/b@:");
  EXPECT_EQ(of("https://example.org/a/b"), "url");
  EXPECT_EQ(of("https://huggingface.co/a/b/tree/main"), "url");
  EXPECT_EQ(of("https://huggingface.co.evil.org/a/b"), "url");
  EXPECT_EQ(of("https://huggingface.co/a/b/resolve/../x.gguf"), "url");
}

TEST(HubApi, TheEnvironmentIsChecked) {
  const auto with = [](const char* endpoint, const char* token) {
    return FindHub([=](const char* name) {
      return std::string(std::string_view(name) == "HF_ENDPOINT" ? endpoint : token);
    });
  };
  EXPECT_EQ(with("", "")->endpoint, "https://huggingface.co");
  EXPECT_EQ(with("http://x:1//", "t")->endpoint, "http://x:1");
  EXPECT_FALSE(with("x:1", "").ok());
  const Status status = with("", "se\ncret").status();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.message().find("cret"), std::string::npos);
}

}  // namespace
}  // namespace hearth
