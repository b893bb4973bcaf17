// SPDX-License-Identifier: Apache-2.0
// Arguments of a call as Python has them: by place or by name.
use crate::values::fail;
use minijinja::value::{Kwargs, Rest, ValueOrKwargs};
use minijinja::{Error, State, Value};

pub struct Args {
    places: Vec<Value>,
    names: Vec<(String, Value)>,
}

impl Args {
    pub fn new(values: &[Value]) -> Result<Args, Error> {
        crate::budget::charge_values(values)?;
        let mut places = values.to_vec();
        let mut names = Vec::new();
        if places.last().is_some_and(Value::is_kwargs) {
            let last = places.pop().unwrap_or_default();
            let kwargs = Kwargs::try_from(last)?;
            for name in kwargs.args() {
                names.push((name.to_string(), kwargs.peek::<Value>(name)?));
            }
        }
        Ok(Args { places, names })
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The argument at `place`, or the one called `name`.
    pub fn get(&self, place: usize, name: &str) -> Option<Value> {
        self.places.get(place).cloned().or_else(|| self.named(name))
    }

    pub fn named(&self, name: &str) -> Option<Value> {
        self.names.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone())
    }

    pub fn names(&self) -> &[(String, Value)] {
        &self.names
    }

    pub fn need(&self, place: usize, name: &str) -> Result<Value, Error> {
        self.get(place, name).map_or_else(|| fail(format!("missing argument {name}")), Ok)
    }

    pub fn rest(&self, from: usize) -> &[Value] {
        self.places.get(from..).unwrap_or_default()
    }

    /// An integer, or none when absent or None.
    pub fn integer(&self, place: usize, name: &str) -> Result<Option<i64>, Error> {
        match self.get(place, name) {
            Some(value) if !value.is_none() => match value.as_i64() {
                Some(number) => Ok(Some(number)),
                None => fail(format!("argument {name} is no integer")),
            },
            _ => Ok(None),
        }
    }

    /// A string, or none when absent or None.
    pub fn text(&self, place: usize, name: &str) -> Result<Option<String>, Error> {
        match self.get(place, name) {
            Some(value) if !value.is_none() => match value.as_str() {
                Some(text) => Ok(Some(text.to_string())),
                None => fail(format!("argument {name} is no string")),
            },
            _ => Ok(None),
        }
    }

    pub fn need_text(&self, place: usize, name: &str) -> Result<String, Error> {
        self.text(place, name)?.map_or_else(|| fail(format!("missing argument {name}")), Ok)
    }

    pub fn truth(&self, place: usize, name: &str) -> bool {
        self.get(place, name).is_some_and(|value| value.is_true())
    }
}

pub type Body = fn(&mut State, &Args) -> Result<Value, Error>;

/// A plain function as something an Environment takes.
pub fn callable(
    body: Body,
) -> impl Fn(&mut State, Rest<ValueOrKwargs>) -> Result<Value, Error> + Send + Sync + 'static {
    move |state: &mut State, values: Rest<ValueOrKwargs>| {
        body(state, &Args::new(&values.into_values())?)
    }
}
