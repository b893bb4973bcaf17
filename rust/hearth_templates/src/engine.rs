// SPDX-License-Identifier: Apache-2.0
// A template from its text to its output, set up as transformers sets up jinja2.
use crate::args::Args;
use crate::budget::{self, charge};
use crate::values::{fail, from_json, Dict};
use crate::{filters, globals, operators, rewrite, strings, text, values};
use minijinja::machinery::{eval, make_string_output, parse, CodeGenerator, Instructions};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Tuple;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value};
use std::collections::BTreeMap;
use std::sync::OnceLock;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limits {
    pub fuel: u64,
    pub work: u64,
    pub output_bytes: u64,
    pub now: i64,
    pub recursion: u32,
    pub has_now: bool,
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
        // Which of our filters stood in for an operator is no news to whoever wrote the template.
        let where_ = error.line().map_or(String::new(), |line| format!("line {line}: "));
        let what = match error.detail() {
            Some(detail) => detail.to_string(),
            None => error.kind().to_string(),
        };
        let exhausted = error.kind() == ErrorKind::OutOfFuel || what == "recursion limit exceeded";
        Failure { exhausted, message: where_ + &what }
    }
}

/// A compiled template. The instructions borrow the source, which moves with them on the heap.
pub struct Template {
    instructions: Instructions<'static>,
    blocks: BTreeMap<&'static str, Instructions<'static>>,
    env: Environment<'static>,
    source: *mut str,
}

// SAFETY: the source is never written; everything else is Send and Sync by itself.
unsafe impl Send for Template {}
unsafe impl Sync for Template {}

impl Drop for Template {
    fn drop(&mut self) {
        self.blocks.clear();
        self.instructions = Instructions::new("", "");
        // SAFETY: made by Box::leak in new(), and its last borrowers were dropped above.
        drop(unsafe { Box::from_raw(self.source) });
    }
}

impl Template {
    pub fn new(source: &str) -> Result<Template, Failure> {
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
        let leaked: *mut str = Box::leak(without_generation(source).into_boxed_str());
        let mut template = Template {
            instructions: Instructions::new("", ""),
            blocks: BTreeMap::new(),
            env: ENVIRONMENT.get_or_init(environment).clone(),
            source: leaked,
        };
        // SAFETY: lives until Template::drop, which drops the instructions first.
        let source: &'static str = unsafe { &*leaked };
        rewrite::check_shape(source, &syntax)?;
        let tree = rewrite::statement(&parse(source, "", syntax)?)?;
        let mut generator = CodeGenerator::new("", source);
        generator.compile_stmt(&tree);
        (template.instructions, template.blocks) = generator.finish();
        Ok(template)
    }

    pub fn render(&self, context: &str, limits: &Limits) -> Result<String, Failure> {
        let mut env = self.env.clone();
        env.set_fuel(Some(limits.fuel));
        env.set_recursion_limit(limits.recursion as usize);
        if !limits.has_now {
            env.remove_global("strftime_now");
        }
        let context: serde_json::Value =
            serde_json::from_str(context).map_err(|e| Failure::new(e.to_string()))?;
        budget::start(limits.work, limits.now);
        let mut rendered = String::new();
        let mut out = make_string_output(&mut rendered);
        let root = from_json(&context);
        eval(&env, &self.instructions, root, &self.blocks, &mut out, AutoEscape::None)?;
        if rendered.len() as u64 > limits.output_bytes {
            return Err(budget::out_of("the output is too long").into());
        }
        Ok(rendered)
    }
}

/// transformers' {% generation %} only notes where the assistant speaks; here it is a scope.
fn without_generation(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let end = tag.find("%}").map_or(tag.len(), |end| end + 2);
        let (tag, after) = tag.split_at(end);
        let inside = tag.trim_start_matches("{%").trim_end_matches("%}");
        let word = inside.trim_matches(['-', '+']).trim();
        match word {
            "generation" => out.push_str(&tag.replace("generation", "with")),
            "endgeneration" => out.push_str(&tag.replace("endgeneration", "endwith")),
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The same for every template: what they change is their own.
static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();

fn environment() -> Environment<'static> {
    let mut env = Environment::empty();
    operators::add_to(&mut env);
    filters::add_to(&mut env);
    globals::add_to(&mut env);
    env.set_formatter(|out, _, value| {
        let text = text::str_of(value)?;
        charge(text.len())?;
        out.write_str(&text).map_err(Error::from)
    });
    env.set_unknown_method_callback(|_: &mut State, value, name, values| {
        method(value, name, &Args::new(values)?)
    });
    env
}

/// A method of a value, as Python has it. Those that would change the value are refused, as
/// Jinja's sandbox does.
fn method(value: &Value, name: &str, args: &Args) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        return strings::method(text, name, args);
    }
    let pair = |(key, item)| Value::from(Tuple::from(vec![key, item]));
    if let Some(dict) = value.downcast_object_ref::<Dict>() {
        let found = |key: &Value| dict.get(key);
        return Ok(match name {
            "get" => found(&args.need(0, "key")?)
                .or_else(|| args.get(1, "default"))
                .unwrap_or_else(|| Value::from(())),
            "items" => values::pairs(value)?.into_iter().map(pair).collect(),
            "keys" => values::pairs(value)?.into_iter().map(|(key, _)| key).collect(),
            "values" => values::pairs(value)?.into_iter().map(|(_, item)| item).collect(),
            "copy" => value.clone(),
            _ => return fail(format!("dict has no callable {name} here")),
        });
    }
    if values::is_sequence(value) {
        let wanted = args.need(0, "value");
        let items = values::items(value)?;
        return match (name, wanted) {
            ("copy", _) => Ok(value.clone()),
            ("count", Ok(wanted)) => {
                Ok(items.iter().filter(|item| values::equal(item, &wanted)).count().into())
            }
            ("index", Ok(wanted)) => {
                match items.iter().position(|item| values::equal(item, &wanted)) {
                    Some(at) => Ok(Value::from(at)),
                    None => fail("value is not in list"),
                }
            }
            _ => fail(format!("list has no callable {name} here")),
        };
    }
    if value.is_undefined() {
        return fail(format!("undefined has no {name}"));
    }
    fail(format!("{} has no {name}", value.kind()))
}
