// SPDX-License-Identifier: Apache-2.0
// The checks of `hearth doctor` that need more than the kernel's files: the kernels' bits, memory's
// speed, the models on this machine, the configuration and a running server.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "app/config.h"
#include "ask/server_call.h"
#include "doctor/finding.h"
#include "doctor/system_files.h"
#include "http/certificate.h"
#include "platform/user_folders.h"
namespace hearth {

// `files` must outlive the checks.
void AddKernelBitChecks(const SystemFiles& files, std::vector<Check>& checks);
// Takes about a second and up to 1 GiB.
void AddBandwidthCheck(const SystemFiles& files, std::vector<Check>& checks);
// What was measured against what the memory modules should give; 0 where that is not known.
Finding JudgeBandwidth(double measured, double expected);

void AddStoreChecks(const SystemFiles& files, const Environment& environment,
                    std::vector<Check>& checks);
// The type of the file system that holds an absolute path, from /proc/self/mountinfo; "" unknown.
std::string FilesystemOf(const SystemFiles& files, const std::string& path);

// Reads up to 256 MiB of the largest model, for at most a second.
void AddDiskCheck(const Environment& environment, std::vector<Check>& checks);
Result<double> DiskReadRate(const std::string& path);  // bytes per second, past the cache
Finding JudgeDiskRate(double bytes_per_second);

// `model` as the command line has it; opened once, by the first check that needs it. With `hashes`
// every file is read and summed.
void AddModelChecks(const std::string& model, const Environment& environment, uint64_t memory_bytes,
                    bool hashes, std::vector<Check>& checks);

// What the configuration says, and who can read the secrets that it names.
void AddConfigChecks(const Settings& settings, std::vector<Check>& checks);

// The certificate of `hearth serve`: its dates at `now` (seconds since 1970), and its key.
void AddTlsChecks(const Settings& settings, std::vector<Check>& checks);
Finding JudgeCertificate(const CertificateDates& dates, int64_t now);

// `port`: what `hearth serve` would listen on.
void AddPortCheck(int port, std::vector<Check>& checks);
void AddServerChecks(const ServerAddress& address, const std::string& own_version,
                     std::vector<Check>& checks);

}  // namespace hearth
