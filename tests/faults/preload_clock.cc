// SPDX-License-Identifier: Apache-2.0
// The clock on the wall, as far off as a test says. Steady clocks go on as they are.
#include <dlfcn.h>
#include <sys/time.h>

#include <ctime>

#include "preload.h"

extern "C" {

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  static const auto next =
      reinterpret_cast<int (*)(clockid_t, timespec*)>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int error = next(clock, out);
  if (error == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    out->tv_sec += faults::ClockOffset();
  }
  return error;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(timeval* out, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *out = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

}  // extern "C"
