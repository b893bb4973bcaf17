// SPDX-License-Identifier: Apache-2.0
// What root may do beyond its own files, given up by the kernel's own calls.
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "confine/confine.h"

namespace hearth {
namespace {

// Two words of each set, the lower numbers first.
using Sets = std::array<__user_cap_data_struct, 2>;

Status Failed(const char* doing) {
  return Error(Code::kUnsupported, "capabilities: %s: %s", doing, std::strerror(errno));
}

Sets SetsOf(KeptCapabilities kept) {
  Sets sets{};
  if (kept == KeptCapabilities::kLowPorts) {
    sets[0].effective = sets[0].permitted = uint32_t{1} << CAP_NET_BIND_SERVICE;
  }
  return sets;
}

// At least what `wanted` has goes beyond it.
bool HasMore(const Sets& sets, const Sets& wanted) {
  for (size_t i = 0; i < sets.size(); ++i) {
    const uint32_t all = sets[i].effective | sets[i].permitted | sets[i].inheritable;
    if ((all & ~wanted[i].permitted) != 0) return true;
  }
  return false;
}

// What a program that is started could get. Only who may change the sets can shrink it; others have
// nothing to gain, for nothing started from here gains privileges.
void DropBounding(const Sets& kept) {
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    const auto word = static_cast<size_t>(capability) / 32;
    if (word < kept.size() && (kept[word].permitted >> (capability % 32) & 1) != 0) continue;
    ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
}

}  // namespace

Status DropCapabilities(KeptCapabilities kept) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  Sets sets{}, wanted = SetsOf(kept);
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return Failed("reading them");
  for (size_t i = 0; i < sets.size(); ++i) {  // what is not there cannot be kept
    wanted[i].permitted &= sets[i].permitted;
    wanted[i].effective &= sets[i].permitted;
  }
  // A service manager may have taken them, and the call that takes them with them.
  if (!HasMore(sets, wanted)) return Status();
  DropBounding(wanted);
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (::syscall(SYS_capset, &header, wanted.data()) != 0) return Failed("giving them up");
  return Status();
}

}  // namespace hearth
