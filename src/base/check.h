// SPDX-License-Identifier: Apache-2.0
// Bugs stop the program here, loudly, in every build. User mistakes never do: see result.h.
#pragma once
namespace hearth {
[[noreturn]] void Die(const char* file, int line, const char* what);
}  // namespace hearth

#define HEARTH_CHECK(cond)                      \
  do {                                          \
    if (!(cond)) [[unlikely]]                   \
      ::hearth::Die(__FILE__, __LINE__, #cond); \
  } while (false)

// For inner loops: compiled in the `dev`, `tsan` and `fuzz` presets, absent from `release`.
#ifdef HEARTH_DCHECKS
#define HEARTH_DCHECK(cond) HEARTH_CHECK(cond)
#else
#define HEARTH_DCHECK(cond) static_cast<void>(sizeof(!(cond)))
#endif
