// SPDX-License-Identifier: Apache-2.0
// What a certificate file says, for `hearth doctor`: until when it is valid, and whose key it has.
#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
namespace hearth {

struct CertificateDates {
  int64_t begins = 0, ends = 0;  // seconds since 1970
};
// Of the first certificate of a PEM file, which is the server's own. kInvalid when it has none.
Result<CertificateDates> ReadCertificateDates(const std::string& path);

// Whether the private key in one PEM file belongs to the first certificate of another.
Status CheckKeyBelongs(const std::string& certificate_path, const std::string& key_path);

}  // namespace hearth
