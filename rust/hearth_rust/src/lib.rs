// SPDX-License-Identifier: Apache-2.0
// The one Rust static library of Hearth. Two would each bring their own copy of the Rust runtime
// and clash at link time, so every crate with a C ABI is named here.
pub use hearth_grammar;
pub use hearth_templates;
