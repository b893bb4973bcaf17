// SPDX-License-Identifier: Apache-2.0
// What one run may cost beside its instructions: every operation charges the bytes and items it
// reads or makes. That bounds time and memory, which fuel alone does not: one instruction can
// double a string.
use minijinja::value::{ObjectRepr, ValueKind};
use minijinja::{Error, ErrorKind, Value};
use std::cell::Cell;

thread_local! {
    static WORK: Cell<u64> = const { Cell::new(0) };
    static NOW: Cell<i64> = const { Cell::new(0) };
}

/// Values inside each other: enough for any schema, and dropping it needs little stack.
const MAX_DEPTH: u32 = 100;

pub fn start(work: u64, now: i64) {
    WORK.set(work);
    NOW.set(now);
}

/// Seconds since 1970 that the template believes it is.
pub fn now() -> i64 {
    NOW.get()
}

pub fn out_of(what: &'static str) -> Error {
    Error::new(ErrorKind::OutOfFuel, what)
}

pub fn charge(amount: usize) -> Result<(), Error> {
    let left = WORK.get();
    // 16: the cost of being called at all, so that empty strings are not free either.
    match left.checked_sub(amount as u64 + 16) {
        Some(rest) => {
            WORK.set(rest);
            Ok(())
        }
        None => {
            WORK.set(0);
            Err(out_of("the template does too much work"))
        }
    }
}

pub fn charge_values(values: &[Value]) -> Result<(), Error> {
    for value in values {
        charge(value.as_str().map_or_else(|| value.len().unwrap_or(0), str::len))?;
    }
    Ok(())
}

/// Refuses values nested so deep that dropping them could exhaust the stack. Called wherever a
/// template keeps a value, which is the only way to build nesting step by step.
pub fn check_depth(value: &Value) -> Result<(), Error> {
    walk(value, 0, &|_| Ok(()))
}

/// Refuses values that hold a mapping which is no dictionary of ours: namespaces change, and one
/// that holds itself has no end.
pub fn check_unchanging(value: &Value) -> Result<(), Error> {
    walk(value, 0, &|value| {
        let is_map = value.kind() == ValueKind::Map;
        if is_map && value.downcast_object_ref::<crate::values::Dict>().is_none() {
            return Err(out_of("a namespace inside a namespace"));
        }
        Ok(())
    })
}

fn walk(
    value: &Value,
    depth: u32,
    check: &dyn Fn(&Value) -> Result<(), Error>,
) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(out_of("values nested too deep"));
    }
    check(value)?;
    let Some(object) = value.as_object() else { return Ok(()) };
    charge(value.len().unwrap_or(1))?;
    match object.repr() {
        ObjectRepr::Map => {
            for (_, item) in object.try_iter_pairs().into_iter().flatten() {
                walk(&item, depth + 1, check)?;
            }
        }
        ObjectRepr::Seq | ObjectRepr::Iterable => {
            for item in object.try_iter().into_iter().flatten() {
                walk(&item, depth + 1, check)?;
            }
        }
        _ => {}
    }
    Ok(())
}
