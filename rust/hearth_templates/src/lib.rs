// SPDX-License-Identifier: Apache-2.0
// Chat templates: a Jinja program out of a model file, run by minijinja within limits, with every
// character of a message recognisable in the output. docs/templates.md says how.
mod abi;
mod args;
mod budget;
mod engine;
mod filters;
mod globals;
mod marks;
mod operators;
mod rewrite;
mod strings;

mod text;
mod values;
