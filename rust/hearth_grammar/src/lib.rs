// SPDX-License-Identifier: Apache-2.0
// Grammars over tokens: llguidance behind a small C ABI, within limits. The C++ side is
// src/grammar; docs/structured-output.md says what is supported.
mod abi;
mod counting;
mod engine;
