// SPDX-License-Identifier: Apache-2.0
// The C ABI, mirrored by src/grammar/rust_abi.h. No entry point lets a panic out; a message handed
// out is given back through hearth_grammar_text_free.
use crate::engine::{accept, mask, Grammar, Limits, Vocabulary};
use anyhow::{anyhow, Result};
use llguidance::Matcher;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// A message owned by Rust.
#[repr(C)]
pub struct Text {
    data: *mut u8,
    size: usize,
}

impl Text {
    fn give(text: String) -> Text {
        let boxed = text.into_bytes().into_boxed_slice();
        let size = boxed.len();
        Text { data: Box::into_raw(boxed) as *mut u8, size }
    }
}

/// Runs `f`; a panic is a bug of ours or of a crate, and costs this call only.
fn guarded<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|_| Err(anyhow!("the grammar engine panicked")))
}

/// # Safety
/// `error` is writable.
unsafe fn boxed<T>(made: Result<T>, error: *mut Text) -> *mut T {
    match made {
        Ok(value) => Box::into_raw(Box::new(value)),
        Err(reason) => {
            unsafe { error.write(Text::give(reason.to_string())) };
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// `value` came from one of the calls above and is not used again. Null is fine.
unsafe fn free<T>(value: *mut T) {
    if !value.is_null() {
        let _ = guarded(|| {
            drop(unsafe { Box::from_raw(value) });
            Ok(())
        });
    }
}

/// # Safety
/// `data` points to `size` bytes, or `size` is 0.
unsafe fn bytes<'a>(data: *const u8, size: usize) -> &'a [u8] {
    if size == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(data, size) }
}

/// # Safety
/// `ends` points to `count` ascending offsets into `data`, the last of them its size.
#[no_mangle]
pub unsafe extern "C" fn hearth_grammar_vocabulary_new(
    data: *const u8,
    ends: *const usize,
    count: usize,
    eos: u32,
    error: *mut Text,
) -> *mut Vocabulary {
    let made = guarded(|| {
        let mut tokens = Vec::with_capacity(count);
        let mut begin = 0;
        for i in 0..count {
            let end = unsafe { *ends.add(i) };
            tokens.push(unsafe { bytes(data.add(begin), end - begin) }.to_vec());
            begin = end;
        }
        Vocabulary::new(tokens, eos)
    });
    unsafe { boxed(made, error) }
}

/// # Safety
/// From hearth_grammar_vocabulary_new, not used again.
#[no_mangle]
pub unsafe extern "C" fn hearth_grammar_vocabulary_free(vocabulary: *mut Vocabulary) {
    unsafe { free(vocabulary) }
}

/// # Safety
/// `vocabulary` is alive; `text` points to `size` bytes; `limits` is readable, `error` writable.
#[no_mangle]
pub unsafe extern "C" fn hearth_grammar_new(
    vocabulary: *const Vocabulary,
    kind: u32,
    text: *const u8,
    size: usize,
    limits: *const Limits,
    error: *mut Text,
) -> *mut Grammar {
    let made = guarded(|| {
        let text = std::str::from_utf8(unsafe { bytes(text, size) })
            .map_err(|e| anyhow!("not UTF-8 at byte {}", e.valid_up_to()))?;
        Grammar::new(unsafe { &*vocabulary }, kind, text, unsafe { &*limits })
    });
    unsafe { boxed(made, error) }
}

/// The memory that it holds.
/// # Safety
/// `grammar` is alive.
#[no_mangle]
pub unsafe extern "C" fn hearth_grammar_bytes(grammar: *const Grammar) -> usize {
    unsafe { &*grammar }.bytes()
}

/// # Safety
/// From hearth_grammar_new, not used again.
#[no_mangle]
pub unsafe extern "C" fn hearth_grammar_free(grammar: *mut Grammar) {
    unsafe { free(grammar) }
}

/// # Safety
/// `grammar` is alive; `error` is writable.
#[no_mangle]
pub unsafe extern "C" fn hearth_matcher_new(
    grammar: *const Grammar,
    error: *mut Text,
) -> *mut Matcher {
    unsafe { boxed(guarded(|| Ok((&*grammar).matcher())), error) }
}

/// Shallow: the copy shares the lexer's states, which is what looking ahead in one sequence wants.
/// # Safety
/// `matcher` is alive; `error` is writable.
#[no_mangle]
pub unsafe extern "C" fn hearth_matcher_clone(
    matcher: *const Matcher,
    error: *mut Text,
) -> *mut Matcher {
    unsafe { boxed(guarded(|| Ok((&*matcher).clone())), error) }
}

/// # Safety
/// From hearth_matcher_new or _clone, not used again.
#[no_mangle]
pub unsafe extern "C" fn hearth_matcher_free(matcher: *mut Matcher) {
    unsafe { free(matcher) }
}

/// Writes the mask, a bit per token, into `words`. False, and a message, when it cannot be had.
/// # Safety
/// `matcher` is alive; `words` points to `count` writable words; `error` is writable.
#[no_mangle]
pub unsafe extern "C" fn hearth_matcher_fill(
    matcher: *mut Matcher,
    words: *mut u32,
    count: usize,
    error: *mut Text,
) -> bool {
    let filled = guarded(|| {
        let mask = mask(unsafe { &mut *matcher })?;
        let out = unsafe { std::slice::from_raw_parts_mut(words, count) };
        let size = count.min(mask.as_slice().len());
        out[..size].copy_from_slice(&mask.as_slice()[..size]);
        out[size..].fill(0);
        Ok(())
    });
    if let Err(reason) = filled {
        unsafe { error.write(Text::give(reason.to_string())) };
        return false;
    }
    true
}

/// False when the token may not follow, or the matcher failed earlier.
/// # Safety
/// `matcher` is alive.
#[no_mangle]
pub unsafe extern "C" fn hearth_matcher_accept(matcher: *mut Matcher, token: u32) -> bool {
    guarded(|| accept(unsafe { &mut *matcher }, token)).unwrap_or(false)
}

/// Whether the text so far is whole.
/// # Safety
/// `matcher` is alive.
#[no_mangle]
pub unsafe extern "C" fn hearth_matcher_is_accepting(matcher: *mut Matcher) -> bool {
    guarded(|| {
        let matcher = unsafe { &mut *matcher };
        Ok((matcher.is_stopped() && matcher.stop_reason().is_ok()) || matcher.is_accepting()?)
    })
    .unwrap_or(false)
}

/// # Safety
/// `text` was written by a call above and is not used again.
#[no_mangle]
pub unsafe extern "C" fn hearth_grammar_text_free(text: Text) {
    if !text.data.is_null() {
        let slice = std::ptr::slice_from_raw_parts_mut(text.data, text.size);
        drop(unsafe { Box::from_raw(slice) });
    }
}
