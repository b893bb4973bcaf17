// SPDX-License-Identifier: Apache-2.0
// Texts that may hold passwords, shown without them.
#pragma once
#include <string>
#include <string_view>
namespace hearth {

// Any text (a message, a line of a log) with "***" for what is secret in it: the password of a URL
// (scheme://user:PASSWORD@host), a user without one (scheme://TOKEN@host) unless the database is
// PostgreSQL, the same without scheme:// (user:PASSWORD@host), values of parameters like password=,
// sslpassword=, ?token= and &api_key= (quoted or not, also as JSON), and what follows Bearer or
// Basic. Where a URL ends is guessed so that rather too much is hidden.
std::string MaskSecrets(std::string_view text);

// The same of a value that is one setting, in which blanks end nothing.
std::string MaskSecretValue(std::string_view value);
inline bool HoldsSecret(std::string_view value) { return MaskSecretValue(value) != value; }

}  // namespace hearth
