// SPDX-License-Identifier: Apache-2.0
// The checks that need nothing but the kernel's files. Those of models, of a server and of the
// configuration are added by app/, which knows those.
#pragma once
#include <vector>

#include "doctor/finding.h"
#include "doctor/system_files.h"
namespace hearth {

// `files` must outlive the checks.
void AddProcessorChecks(const SystemFiles& files, std::vector<Check>& checks);
void AddMemoryChecks(const SystemFiles& files, std::vector<Check>& checks);
void AddModuleChecks(const SystemFiles& files, std::vector<Check>& checks);  // memory modules
void AddCgroupChecks(const SystemFiles& files, std::vector<Check>& checks);
void AddKernelChecks(const SystemFiles& files, std::vector<Check>& checks);

}  // namespace hearth
