// SPDX-License-Identifier: Apache-2.0
// A template from its text to its output.
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Value};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limits {
    pub fuel: u64,
    pub work: u64,
    pub output_bytes: u64,
    pub recursion: u32,
}

pub struct Failure {
    pub exhausted: bool,
    pub message: String,
}

impl Failure {
    pub fn new(message: String) -> Failure {
        Failure { exhausted: false, message }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { exhausted: error.kind() == ErrorKind::OutOfFuel, message: error.to_string() }
    }
}

pub struct Template {
    env: Environment<'static>,
}

const NAME: &str = "chat_template";

impl Template {
    pub fn new(source: &str) -> Result<Template, Failure> {
        let mut env = Environment::new();
        env.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        env.add_template_owned(NAME, source.to_string())?;
        Ok(Template { env })
    }

    pub fn render(&self, context: &str, limits: &Limits) -> Result<String, Failure> {
        let mut env = self.env.clone();
        env.set_fuel(Some(limits.fuel));
        let context: serde_json::Value =
            serde_json::from_str(context).map_err(|e| Failure::new(e.to_string()))?;
        Ok(env.get_template(NAME)?.render(value(&context))?)
    }
}

fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(b) => Value::from(*b),
        serde_json::Value::Number(n) => match n.as_i64() {
            Some(i) => Value::from(i),
            None => Value::from(n.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(s) => Value::from(s.as_str()),
        serde_json::Value::Array(items) => Value::from_iter(items.iter().map(value)),
        serde_json::Value::Object(members) => {
            Value::from_pairs(members.iter().map(|(k, v)| (Value::from(k.as_str()), value(v))))
        }
    }
}
