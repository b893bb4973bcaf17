// SPDX-License-Identifier: Apache-2.0
// Names of models from people, lists of files from a server that may be anybody's, and notes in the
// store that somebody may have edited: nothing leads out of a folder, and what is written is read
// again as the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "hub/hub_api.h"
#include "store/manifest.h"
#include "store/reference.h"

namespace hearth {
namespace {

[[noreturn]] void Report(const char* wrong, const std::string& text) {
  std::fprintf(stderr, "names_fuzz: %s: %s\n", wrong, text.c_str());
  std::abort();
}

// The twin of the checks: a path that stays where it is put.
bool LeadsAway(const std::string& path) {
  if (path.empty() || path[0] == '/' || path.find('\0') != std::string::npos) return true;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return true;
    at = end + 1;
  }
  return false;
}

void CheckReference(const std::string& text) {
  Result<ModelReference> reference = ParseReference(text);
  if (!reference.ok()) return;
  if (reference->kind == ModelReference::Kind::kHub) {
    if (LeadsAway(reference->repo)) Report("a repository elsewhere", text);
    if (reference->repo.find('/') == std::string::npos) Report("no owner", text);
  }
  const std::string plain = PlainForm(text);
  if (PlainForm(plain) != plain) Report("plain twice is another name", text);
  if (IsModelName(text) && LeadsAway(text)) Report("a name that leads away", text);
}

void CheckListing(const std::string& text) {
  Result<HubRepo> repo = ParseListing(text);
  if (!repo.ok()) return;
  for (const HubFile& file : repo->files) {
    if (LeadsAway(file.path)) Report("a file elsewhere", file.path);
  }
}

void CheckManifest(const std::string& text) {
  Result<Manifest> manifest = ParseManifest(text);
  if (!manifest.ok()) return;
  for (const ManifestFile& file : manifest->files) {
    if (LeadsAway(file.name)) Report("a noted file elsewhere", file.name);
  }
  const std::string written = WriteManifest(*manifest);
  Result<Manifest> again = ParseManifest(written);
  if (!again.ok() || WriteManifest(*again) != written) Report("written and not read", written);
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  hearth::CheckReference(text);
  hearth::CheckListing(text);
  hearth::CheckManifest(text);
  return 0;
}
