// SPDX-License-Identifier: Apache-2.0
// The operators of the language, as filters that rewrite.rs puts in place of the built-in ones.
use crate::args::{callable, Args};
use crate::budget::{charge, check_depth};
use crate::text::{push_html, str_of};
use crate::values::{contains, equal, fail, is_sequence, items, order, Dict};
use minijinja::value::{Kwargs, Object, ObjectRepr, ValueKind};
use minijinja::{Environment, Error, State, Value};
use std::sync::Arc;

type Made = Result<Value, Error>;

fn compare(name: &str, a: &Value, b: &Value) -> Result<bool, Error> {
    Ok(match name {
        "==" => equal(a, b),
        "!=" => !equal(a, b),
        "<" => order(a, b)?.is_lt(),
        "<=" => order(a, b)?.is_le(),
        ">" => order(a, b)?.is_gt(),
        ">=" => order(a, b)?.is_ge(),
        "@in" => contains(b, a)?,
        _ => !contains(b, a)?,
    })
}

fn compare_chain(_: &mut State, args: &Args) -> Made {
    let parts = args.rest(0);
    for step in parts.windows(3).step_by(2) {
        if !compare(step[1].as_str().unwrap_or_default(), &step[0], &step[2])? {
            return Ok(Value::from(false));
        }
    }
    Ok(Value::from(true))
}

enum Pair {
    Integers(i128, i128),
    Floats(f64, f64),
}

fn numbers(op: &str, a: &Value, b: &Value) -> Result<Pair, Error> {
    let integer = |v: &Value| match v.kind() {
        ValueKind::Bool => Some(v.is_true() as i128),
        ValueKind::Number if v.is_integer() => i128::try_from(v.clone()).ok(),
        _ => None,
    };
    let float = |v: &Value| match integer(v) {
        Some(i) => Some(i as f64),
        None if v.is_number() => f64::try_from(v.clone()).ok(),
        None => None,
    };
    match (integer(a), integer(b), float(a), float(b)) {
        (Some(x), Some(y), _, _) => Ok(Pair::Integers(x, y)),
        (_, _, Some(x), Some(y)) => Ok(Pair::Floats(x, y)),
        _ => fail(format!("'{op}' is not defined between {} and {}", a.kind(), b.kind())),
    }
}

fn integer(value: Option<i128>) -> Made {
    match value.map(i64::try_from) {
        Some(Ok(number)) => Ok(Value::from(number)),
        _ => fail("integer overflow"),
    }
}

fn list_or_tuple(like: &Value, values: Vec<Value>) -> Value {
    if like.is_tuple() {
        Value::from(minijinja::value::Tuple::from(values))
    } else {
        Value::from(values)
    }
}

fn add(_: &mut State, args: &Args) -> Made {
    let (a, b) = (args.need(0, "a")?, args.need(1, "b")?);
    if let (Some(x), Some(y)) = (a.as_str(), b.as_str()) {
        return Ok(add_text(&a, &b, x, y));
    }
    if is_sequence(&a) && is_sequence(&b) {
        let mut values = items(&a)?;
        values.extend(items(&b)?);
        return Ok(list_or_tuple(&a, values));
    }
    match numbers("+", &a, &b)? {
        Pair::Integers(x, y) => integer(x.checked_add(y)),
        Pair::Floats(x, y) => Ok(Value::from(x + y)),
    }
}

fn multiply(_: &mut State, args: &Args) -> Made {
    let (a, b) = (args.need(0, "a")?, args.need(1, "b")?);
    for (many, times) in [(&a, &b), (&b, &a)] {
        let Some(times) = times.as_i64() else { continue };
        let times = usize::try_from(times).unwrap_or(0);
        if let Some(text) = many.as_str() {
            charge(text.len().saturating_mul(times))?;
            return Ok(Value::from(text.repeat(times)));
        }
        if is_sequence(many) {
            let values = items(many)?;
            charge(values.len().saturating_mul(times).saturating_mul(size_of::<Value>()))?;
            return Ok(list_or_tuple(many, std::iter::repeat_n(values, times).flatten().collect()));
        }
    }
    match numbers("*", &a, &b)? {
        Pair::Integers(x, y) => integer(x.checked_mul(y)),
        Pair::Floats(x, y) => Ok(Value::from(x * y)),
    }
}

fn remainder(_: &mut State, args: &Args) -> Made {
    let (a, b) = (args.need(0, "a")?, args.need(1, "b")?);
    match numbers("%", &a, &b)? {
        Pair::Integers(_, 0) => fail("modulo by zero"),
        Pair::Integers(x, y) => integer(Some((x % y + y) % y)),
        Pair::Floats(_, 0.0) => fail("modulo by zero"),
        Pair::Floats(x, y) => Ok(Value::from(x - y * (x / y).floor())),
    }
}

fn concatenate(_: &mut State, args: &Args) -> Made {
    let (a, b) = (str_of(&args.need(0, "a")?)?, str_of(&args.need(1, "b")?)?);
    charge(a.len() + b.len())?;
    Ok(Value::from(a + &b))
}

/// a + b; when one was declared safe HTML, Python's `+` (but not `~`) escapes the other.
fn add_text(a: &Value, b: &Value, x: &str, y: &str) -> Value {
    let mut out = String::new();
    for (value, text, other) in [(a, x, b), (b, y, a)] {
        if other.is_safe() && !value.is_safe() {
            push_html(text, &mut out);
        } else {
            out.push_str(text);
        }
    }
    if a.is_safe() || b.is_safe() {
        Value::from_safe_string(out)
    } else {
        Value::from(out)
    }
}

/// The places that Python's slice(start, stop, step) picks out of `size`.
pub fn slice_places(size: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<usize> {
    let size = size as i64;
    let clamp = |bound: Option<i64>, none: i64, low: i64, high: i64| match bound {
        None => none,
        Some(b) if b < 0 => b.saturating_add(size).clamp(low, high),
        Some(b) => b.clamp(low, high),
    };
    let mut places = Vec::new();
    if step > 0 {
        let stop = clamp(stop, size, 0, size);
        let mut at = clamp(start, 0, 0, size);
        while at < stop {
            places.push(at as usize);
            at = at.saturating_add(step);
        }
    } else {
        let stop = clamp(stop, -1, -1, size - 1);
        let mut at = clamp(start, size - 1, -1, size - 1);
        while at > stop {
            places.push(at as usize);
            at = at.saturating_add(step);
        }
    }
    places
}

fn slice(_: &mut State, args: &Args) -> Made {
    let value = args.need(0, "value")?;
    let step = args.integer(3, "step")?.unwrap_or(1);
    if step == 0 {
        return fail("slice step cannot be zero");
    }
    let (start, stop) = (args.integer(1, "start")?, args.integer(2, "stop")?);
    if let Some(text) = value.as_str() {
        let chars: Vec<char> = text.chars().collect();
        let places = slice_places(chars.len(), start, stop, step);
        return Ok(Value::from(places.into_iter().map(|at| chars[at]).collect::<String>()));
    }
    if !is_sequence(&value) {
        return fail(format!("{} cannot be sliced", value.kind()));
    }
    let all = items(&value)?;
    let places = slice_places(all.len(), start, stop, step);
    Ok(list_or_tuple(&value, places.into_iter().map(|at| all[at].clone()).collect()))
}

/// A method of a dictionary that was named but not called. Python finds it before (`x.items`) or
/// after (`x['items']`) the key of that name, and templates depend on it being there.
#[derive(Debug)]
struct BoundMethod;

impl Object for BoundMethod {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
}

fn dict_method(value: &Value, name: &str) -> Option<Value> {
    const NAMES: [&str; 11] = [
        "clear",
        "copy",
        "fromkeys",
        "get",
        "items",
        "keys",
        "pop",
        "popitem",
        "setdefault",
        "update",
        "values",
    ];
    let found = NAMES.contains(&name) && value.downcast_object_ref::<Dict>().is_some();
    found.then(|| Value::from_object(BoundMethod))
}

fn defined(value: &Value, what: &str) -> Result<(), Error> {
    if value.is_undefined() {
        return fail(format!("undefined has no {what}"));
    }
    Ok(())
}

fn attribute(_: &mut State, args: &Args) -> Made {
    let (value, name) = (args.need(0, "value")?, args.need_text(1, "name")?);
    defined(&value, &name)?;
    match dict_method(&value, &name) {
        Some(method) => Ok(method),
        None => value.get_attr(&name),
    }
}

fn item(_: &mut State, args: &Args) -> Made {
    let (value, key) = (args.need(0, "value")?, args.need(1, "key")?);
    let plain_key = key.as_str().map(crate::marks::plain_text);
    defined(&value, plain_key.as_deref().unwrap_or("item"))?;
    if let (Some(text), Some(index)) = (value.as_str(), key.as_i64()) {
        let chars: Vec<char> = text.chars().collect();
        let at = if index < 0 { index + chars.len() as i64 } else { index };
        let found = usize::try_from(at).ok().and_then(|at| chars.get(at));
        return Ok(found.map_or(Value::UNDEFINED, |c| Value::from(c.to_string())));
    }
    let found = match &plain_key {
        Some(name) => value.get_item(&Value::from(&**name)),
        None => value.get_item(&key),
    }
    .unwrap_or_default();
    match plain_key {
        Some(name) if found.is_undefined() => {
            Ok(dict_method(&value, &name).unwrap_or(Value::UNDEFINED))
        }
        _ => Ok(found),
    }
}

fn dict(_: &mut State, args: &Args) -> Made {
    let mut dict = Dict::default();
    for pair in args.rest(1).chunks_exact(2) {
        dict.put(pair[0].clone(), pair[1].clone());
    }
    Ok(Value::from_object(dict))
}

fn keyword_arguments(_: &mut State, args: &Args) -> Made {
    let mut made = Vec::new();
    for (key, value) in crate::values::pairs(&args.need(0, "value")?)? {
        match key.as_str() {
            Some(text) => made.push((crate::marks::plain_text(text).into_owned(), value)),
            None => return fail("keywords must be strings"),
        }
    }
    Ok(Value::from(Kwargs::from_iter(made)))
}

fn keep(_: &mut State, args: &Args) -> Made {
    let value = args.need(0, "value")?;
    check_depth(&value)?;
    Ok(value)
}

/// What may be stored in a namespace: anything but what can change, or it could hold itself.
fn inside(_: &mut State, args: &Args) -> Made {
    let value = args.need(0, "value")?;
    crate::budget::check_unchanging(&value)?;
    Ok(value)
}

fn iterate(_: &mut State, args: &Args) -> Made {
    let value = args.need(0, "value")?;
    if value.as_str().is_some() {
        return Ok(Value::from(items(&value)?));
    }
    if value.is_none() {
        return fail("None is not iterable");
    }
    Ok(value)
}

pub fn add_to(env: &mut Environment) {
    for name in ["==", "!=", "<", "<=", ">", ">=", "@in", "@not in"] {
        env.add_filter(name, move |a: Value, b: Value| {
            crate::budget::charge_values(&[a.clone(), b.clone()])?;
            compare(name, &a, &b)
        });
    }
    env.add_filter("@compare", callable(compare_chain));
    env.add_filter("+", callable(add));
    env.add_filter("*", callable(multiply));
    env.add_filter("%", callable(remainder));
    env.add_filter("~", callable(concatenate));
    env.add_filter("@slice", callable(slice));
    env.add_filter("@attr", callable(attribute));
    env.add_filter("@item", callable(item));
    env.add_filter("@dict", callable(dict));
    env.add_filter("@kwargs", callable(keyword_arguments));
    env.add_filter("@keep", callable(keep));
    env.add_filter("@inside", callable(inside));
    env.add_filter("@iter", callable(iterate));
}
