// SPDX-License-Identifier: Apache-2.0
// Whether this very processor computes what the scalar kernels define: a virtual machine, an
// emulator or a damaged core may not. The tests of the kernels look closer and take minutes; this
// takes a fraction of a second, for `hearth doctor`.
#pragma once
#include <string>

#include "cpu/kernels.h"
namespace hearth {

// The first kernel of the table whose bits differ from the scalar one's, with what it computed; ""
// when there is none. The table's instructions must work here.
std::string FirstDifference(const KernelTable& table);

}  // namespace hearth
