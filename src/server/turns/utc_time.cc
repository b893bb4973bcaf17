// SPDX-License-Identifier: Apache-2.0
#include "server/turns/utc_time.h"

#include <ctime>

#include "base/result.h"

namespace hearth {

std::string Rfc3339(std::chrono::system_clock::time_point time, int num_digits) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time - seconds).count();
  const std::time_t since_1970 = std::chrono::system_clock::to_time_t(seconds);
  std::tm utc{};
  gmtime_r(&since_1970, &utc);
  const std::string digits = Printf("%06lld", static_cast<long long>(micros));
  return Printf("%04d-%02d-%02dT%02d:%02d:%02d.%.*sZ", utc.tm_year + 1900, utc.tm_mon + 1,
                utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, num_digits, digits.c_str());
}

}  // namespace hearth
