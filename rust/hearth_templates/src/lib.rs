// SPDX-License-Identifier: Apache-2.0
// Chat templates: a Jinja program from a model file, run by minijinja within limits.
mod abi;
mod engine;
