// SPDX-License-Identifier: Apache-2.0
// The C ABI, mirrored by src/templates/rust_abi.h. No entry point lets a panic out, and every
// buffer handed out is given back through hearth_bytes_free.
use crate::engine::{Failure, Limits, Template};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Bytes owned by Rust: the output when a call succeeds, its error message when not.
#[repr(C)]
pub struct Bytes {
    data: *mut u8,
    size: usize,
}

impl Bytes {
    fn give(text: String) -> Bytes {
        let boxed = text.into_bytes().into_boxed_slice();
        let size = boxed.len();
        Bytes { data: Box::into_raw(boxed) as *mut u8, size }
    }
}

#[repr(C)]
pub enum Outcome {
    Rendered = 0,
    Failed = 1,
    Exhausted = 2,
}

/// # Safety
/// `data` must point to `size` readable bytes, or `size` be 0.
unsafe fn text<'a>(data: *const u8, size: usize) -> Result<&'a str, Failure> {
    if size == 0 {
        return Ok("");
    }
    let bytes = unsafe { std::slice::from_raw_parts(data, size) };
    std::str::from_utf8(bytes)
        .map_err(|e| Failure::new(format!("not UTF-8 at byte {}", e.valid_up_to())))
}

/// Runs `f`; a panic is a bug of ours or of a crate, and costs this call only.
fn guarded<T>(f: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|_| Err(Failure::new("the template engine panicked".to_string())))
}

/// Null and a message in `error` when the template does not parse.
/// # Safety
/// `source` points to `size` bytes; `error` is writable. The result goes to hearth_template_free.
#[no_mangle]
pub unsafe extern "C" fn hearth_template_new(
    source: *const u8,
    size: usize,
    error: *mut Bytes,
) -> *mut Template {
    match guarded(|| Template::new(unsafe { text(source, size) }?)) {
        Ok(template) => Box::into_raw(Box::new(template)),
        Err(failure) => {
            unsafe { error.write(Bytes::give(failure.message)) };
            std::ptr::null_mut()
        }
    }
}

/// The output in `out` when kRendered, a message otherwise.
/// # Safety
/// `template` came from hearth_template_new; `json` points to `size` bytes; `out` is writable.
#[no_mangle]
pub unsafe extern "C" fn hearth_template_render(
    template: *const Template,
    json: *const u8,
    size: usize,
    limits: *const Limits,
    out: *mut Bytes,
) -> Outcome {
    let rendered = guarded(|| {
        let (template, limits) = unsafe { (&*template, &*limits) };
        template.render(unsafe { text(json, size) }?, limits)
    });
    let (outcome, text) = match rendered {
        Ok(text) => (Outcome::Rendered, text),
        Err(failure) if failure.exhausted => (Outcome::Exhausted, failure.message),
        Err(failure) => (Outcome::Failed, failure.message),
    };
    unsafe { out.write(Bytes::give(text)) };
    outcome
}

/// # Safety
/// `template` came from hearth_template_new and is not used again. Null is fine.
#[no_mangle]
pub unsafe extern "C" fn hearth_template_free(template: *mut Template) {
    if !template.is_null() {
        let _ = guarded(|| {
            drop(unsafe { Box::from_raw(template) });
            Ok(())
        });
    }
}

/// # Safety
/// `bytes` was written by a call above and is not used again.
#[no_mangle]
pub unsafe extern "C" fn hearth_bytes_free(bytes: Bytes) {
    if !bytes.data.is_null() {
        let slice = std::ptr::slice_from_raw_parts_mut(bytes.data, bytes.size);
        drop(unsafe { Box::from_raw(slice) });
    }
}
