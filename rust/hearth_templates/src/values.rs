// SPDX-License-Identifier: Apache-2.0
// Values as Python has them: how they compare, what contains what, and dictionaries whose keys
// may come from a message.
use crate::budget::charge;
use crate::marks::{plain, plain_text};
use minijinja::value::{Enumerator, Object, ObjectExt, ObjectRepr, ValueKind};
use minijinja::{Error, ErrorKind, Value};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

pub fn fail<T>(message: impl Into<std::borrow::Cow<'static, str>>) -> Result<T, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// A dictionary: found by the plain side of a key, shown with the key as it came.
#[derive(Debug, Default)]
pub struct Dict {
    entries: Vec<(Value, Value)>,
    by_text: HashMap<String, usize>,
}

impl Dict {
    pub fn put(&mut self, key: Value, value: Value) {
        let index = match key.as_str() {
            Some(text) => {
                let next = self.entries.len();
                *self.by_text.entry(plain_text(text).into_owned()).or_insert(next)
            }
            None => self.entries.iter().position(|(k, _)| equal(k, &key)).unwrap_or(usize::MAX),
        };
        match self.entries.get_mut(index) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((key, value)),
        }
    }

    pub fn get(&self, key: &Value) -> Option<Value> {
        match key.as_str() {
            Some(text) => self.get_text(&plain_text(text)),
            None => self.entries.iter().find(|(k, _)| equal(k, key)).map(|(_, v)| v.clone()),
        }
    }

    pub fn get_text(&self, key: &str) -> Option<Value> {
        self.by_text.get(key).map(|&index| self.entries[index].1.clone())
    }
}

impl Object for Dict {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get(key)
    }
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.mapped_key_value_enumerator(|this| Box::new(this.entries.iter().cloned()))
    }
    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.entries.len())
    }
}

pub fn from_json(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(b) => Value::from(*b),
        serde_json::Value::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(i), _) => Value::from(i),
            (None, Some(u)) => Value::from(u),
            _ => Value::from(n.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(s) => Value::from(s.as_str()),
        serde_json::Value::Array(items) => Value::from_iter(items.iter().map(from_json)),
        serde_json::Value::Object(members) => {
            let mut dict = Dict::default();
            for (key, value) in members {
                dict.put(Value::from(key.as_str()), from_json(value));
            }
            Value::from_object(dict)
        }
    }
}

pub fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

/// Key and value of everything in a mapping.
pub fn pairs(value: &Value) -> Result<Vec<(Value, Value)>, Error> {
    charge(value.len().unwrap_or(0))?;
    if value.is_undefined() {
        return Ok(Vec::new());
    }
    match value.as_object() {
        Some(object) if value.kind() == ValueKind::Map => {
            Ok(object.try_iter_pairs().into_iter().flatten().collect())
        }
        _ => fail("expected a mapping"),
    }
}

/// Everything a loop over the value would see.
pub fn items(value: &Value) -> Result<Vec<Value>, Error> {
    // Each becomes a value of its own.
    let size = value.as_str().map_or_else(|| value.len().unwrap_or(0), str::len);
    charge(size.saturating_mul(size_of::<Value>()))?;
    if let Some(text) = value.as_str() {
        return Ok(text.chars().map(|c| Value::from(c.to_string())).collect());
    }
    Ok(value.try_iter()?.collect())
}

/// Python's ==.
pub fn equal(a: &Value, b: &Value) -> bool {
    if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
        return a.chars().map(plain).eq(b.chars().map(plain));
    }
    if a.is_number() || a.kind() == ValueKind::Bool {
        return (b.is_number() || b.kind() == ValueKind::Bool) && a == b;
    }
    if is_sequence(a) && is_sequence(b) {
        let (Ok(mut a), Ok(mut b)) = (a.try_iter(), b.try_iter()) else { return false };
        loop {
            match (a.next(), b.next()) {
                (None, None) => return true,
                (Some(x), Some(y)) if equal(&x, &y) => {}
                _ => return false,
            }
        }
    }
    if let (Some(x), Some(y)) = (a.downcast_object_ref::<Dict>(), b.downcast_object_ref::<Dict>()) {
        return x.entries.len() == y.entries.len()
            && x.entries.iter().all(|(k, v)| y.get(k).is_some_and(|w| equal(v, &w)));
    }
    a.kind() == b.kind() && a == b
}

/// Python's <, for what Python can order.
pub fn order(a: &Value, b: &Value) -> Result<Ordering, Error> {
    if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
        return Ok(a.chars().map(plain).cmp(b.chars().map(plain)));
    }
    let orderable = |v: &Value| v.is_number() || v.kind() == ValueKind::Bool;
    if orderable(a) && orderable(b) {
        return Ok(a.cmp(b));
    }
    if is_sequence(a) && is_sequence(b) {
        for (x, y) in a.try_iter()?.zip(b.try_iter()?) {
            if !equal(&x, &y) {
                return order(&x, &y);
            }
        }
        return Ok(a.len().cmp(&b.len()));
    }
    fail(format!("'<' is not defined between {} and {}", a.kind(), b.kind()))
}

/// Python's `item in container`.
pub fn contains(container: &Value, item: &Value) -> Result<bool, Error> {
    if let Some(text) = container.as_str() {
        let Some(part) = item.as_str() else {
            return fail(format!("'in <string>' needs a string, not {}", item.kind()));
        };
        charge(text.len() + part.len())?;
        return Ok(plain_text(text).contains(&*plain_text(part)));
    }
    if container.is_undefined() {
        return Ok(false);
    }
    charge(container.len().unwrap_or(0))?;
    if let Some(dict) = container.downcast_object_ref::<Dict>() {
        return Ok(dict.get(item).is_some());
    }
    match container.kind() {
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => {
            Ok(container.try_iter()?.any(|other| equal(&other, item)))
        }
        other => fail(format!("{other} is no container")),
    }
}
