// SPDX-License-Identifier: Apache-2.0
// Floats that somebody wrote in decimal.
#pragma once
namespace hearth {

// The double that the shortest decimal naming this float names: 0.6f gives 0.6, not
// 0.6000000238418579. NaN and infinities stay what they are.
double MeantBy(float value);

}  // namespace hearth
