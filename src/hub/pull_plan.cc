// SPDX-License-Identifier: Apache-2.0
#include "hub/pull_plan.h"

#include <algorithm>

#include "store/folders.h"
#include "store/selection.h"

namespace hearth {
namespace {

constexpr size_t kMaxListingBytes = size_t{64} << 20;

// A file's or repository's name as one of the store: other characters become dashes.
std::string StoreName(std::string_view text) {
  std::string name;
  for (const char c : text) name += IsModelName(std::string("x") + c) ? c : '-';
  while (!name.empty() && !IsModelName(name.substr(0, 1))) name.erase(0, 1);
  return name.substr(0, 100);
}

Result<PullPlan> PlanFromHub(Transport& transport, const HubAddress& hub,
                             const ModelReference& reference, const PullWishes& wishes,
                             PullWatcher& watcher) {
  const std::string revision = reference.revision.empty() ? "main" : reference.revision;
  const HttpFetch fetch{.url = ListingUrl(hub, reference.repo, revision), .token = hub.token};
  const std::string what =
      reference.repo + (reference.revision.empty() ? "" : "@" + revision) + " at " + hub.endpoint;
  HEARTH_ASSIGN(const TextAnswer answer, FetchText(transport, fetch, what, kMaxListingBytes,
                                                   wishes.policy.retry, wishes.policy.stall_time));
  HEARTH_ASSIGN(const HubRepo repo, ParseListing(answer.body).Within(what));
  std::vector<ListedFile> listed;
  for (const HubFile& file : repo.files) listed.push_back({file.path, file.bytes});
  const std::vector<ModelFiles> models = ModelsAmong(listed);
  HEARTH_ASSIGN(const ModelFiles chosen,
                ChooseModel(listed, models, reference.selector, reference.repo));
  if (models.size() > 1 && reference.selector.empty()) {
    watcher.OnNote(Printf("chose %s of %zu models in %s; write OWNER/REPO:QUANT for another",
                          chosen.is_directory ? "the safetensors" : chosen.stem.c_str(),
                          models.size(), reference.repo.c_str()));
  }
  PullPlan plan{.token = hub.token};
  plan.manifest = {.repo = reference.repo,
                   .revision = repo.commit,
                   .selector = chosen.is_directory ? "safetensors" : chosen.quant,
                   .licence = repo.licence,
                   .is_directory = chosen.is_directory};
  if (!chosen.is_directory && chosen.quant.empty()) plan.manifest.selector = chosen.stem;
  const size_t slash = reference.repo.find('/');
  plan.manifest.name =
      StoreName(chosen.is_directory ? reference.repo.substr(slash + 1) : chosen.stem);
  for (const size_t i : chosen.files) {
    const HubFile& file = repo.files[i];
    plan.manifest.files.push_back(
        {std::string(BaseName(file.path)), file.bytes, file.digest.text()});
    plan.files.push_back(
        {FileUrl(hub, reference.repo, repo.commit, file.path), file.digest, repo.commit});
  }
  return plan;
}

// The last part of a URL's path, without query; "model.gguf" when that is no file's name.
std::string FileNameOf(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const size_t host = url.find("://");
  const size_t slash = url.rfind('/');
  const std::string_view name =
      host == url.npos || slash < host + 3 ? std::string_view() : url.substr(slash + 1);
  const bool is_plain = IsPlainName(name) && !name.starts_with('.') && name != kManifestName;
  return is_plain ? std::string(name) : "model.gguf";
}

Result<PullPlan> PlanFromUrl(Transport& transport, const std::string& url,
                             const PullWishes& wishes) {
  PullPlan plan;
  plan.manifest.url = url;
  const HttpFetch fetch{.url = url, .is_head = true};
  HEARTH_ASSIGN(const TextAnswer answer,
                FetchText(transport, fetch, url, 0, wishes.policy.retry, wishes.policy.stall_time));
  const HttpHead& head = answer.head;
  const auto bytes = head.linked_size ? head.linked_size : head.length;
  if (!bytes || *bytes == 0 || *bytes > uint64_t{1} << 44) {
    return Error(
        Code::kUnsupported,
        "%s: the server does not say how long the file is; download it with another program "
        "and give Hearth its path",
        url.c_str());
  }
  std::optional<Digest> digest = ParseDigest(DigestKind::kSha256, wishes.sha256);
  if (!wishes.sha256.empty() && !digest) {
    return Error(Code::kInvalid, "--sha256 %s: expected 64 hexadecimal digits",
                 Quoted(wishes.sha256).c_str());
  }
  if (!digest) digest = ParseDigest(DigestKind::kSha256, head.linked_etag);
  const std::string file = FileNameOf(url);
  const size_t dot = file.rfind('.');
  plan.manifest.name = StoreName(file.substr(0, dot == 0 ? dot : std::min(dot, file.size())));
  plan.manifest.files.push_back({file, *bytes, digest ? digest->text() : ""});
  plan.files.push_back({url, digest.value_or(Digest()), head.etag});
  return plan;
}

}  // namespace

Result<PullPlan> MakePullPlan(Transport& transport, const HubAddress& hub,
                              const ModelReference& reference, const std::string& name,
                              const PullWishes& wishes, PullWatcher& watcher) {
  const bool is_url = reference.kind == ModelReference::Kind::kUrl;
  if (!is_url && !wishes.sha256.empty()) {
    return Error(Code::kInvalid,
                 "--sha256 is for URLs: the Hub gives the sums of its files itself");
  }
  HEARTH_ASSIGN(PullPlan plan, is_url ? PlanFromUrl(transport, reference.url, wishes)
                                      : PlanFromHub(transport, hub, reference, wishes, watcher));
  if (!name.empty()) plan.manifest.name = name;
  if (!IsModelName(plan.manifest.name)) {
    return Error(Code::kInvalid, "no name for the model follows from %s; give one with --name",
                 Quoted(wishes.what).c_str());
  }
  return plan;
}

}  // namespace hearth
