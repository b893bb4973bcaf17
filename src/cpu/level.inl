// SPDX-License-Identifier: Apache-2.0
// Kernel files that exist once and are compiled for two levels (room.cmake): what the second level
// has beyond the first. Included inside an unnamed namespace.

#ifdef HEARTH_VNNI
constexpr bool kVnni = true;  // AVX2 files: dot products of bytes are one instruction
#else
constexpr bool kVnni = false;
#endif
#ifdef HEARTH_VBMI
constexpr bool kVbmi = true;  // AVX-512 files: a table of 64 bytes is looked up in one instruction
#else
constexpr bool kVbmi = false;
#endif
