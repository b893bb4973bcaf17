// SPDX-License-Identifier: Apache-2.0
// What the Hub says about a repository: its files, their lengths and digests, at one commit.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/digest.h"
#include "hub/fetch_text.h"
#include "store/places.h"
#include "store/reference.h"
namespace hearth {

struct HubFile {
  std::string path{};  // inside the repository; safe to use below a folder
  uint64_t bytes = 0;
  Digest digest{};
};

struct HubRepo {
  std::string commit;
  std::string licence;  // as the repository states it; may be empty
  std::vector<HubFile> files;
};

struct HubAddress {
  std::string endpoint;  // without a slash at the end
  std::string token;     // may be empty
};

// HF_ENDPOINT and HF_TOKEN, checked.
Result<HubAddress> FindHub(const Environment& environment);

std::string ListingUrl(const HubAddress& hub, const std::string& repo, const std::string& revision);
std::string FileUrl(const HubAddress& hub, const std::string& repo, const std::string& revision,
                    const std::string& path);
// The listing's JSON. Files with names that could lead elsewhere, and with lengths beyond a disk,
// are refused with the whole listing: kCorrupt.
Result<HubRepo> ParseListing(std::string_view text);

// A URL of a file on the Hub (…/resolve/REV/FILE, or …/blob/REV/FILE as the browser shows it) as a
// reference; any other URL unchanged.
ModelReference HubReferenceOf(const HubAddress& hub, const ModelReference& reference);

}  // namespace hearth
