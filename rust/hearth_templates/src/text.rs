// SPDX-License-Identifier: Apache-2.0
// Values as text: Python's str() and repr(), and json.dumps as chat templates use it.
use crate::budget::charge;
use crate::marks::{is_marked, marked_like, paired, plain};
use crate::values::{fail, is_sequence, order, pairs};
use minijinja::value::ValueKind;
use minijinja::{Error, Value};

/// repr() of a float: the shortest digits that read back, exponents below 1e-4 and from 1e16.
pub fn float_repr(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let scientific = format!("{x:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let fixed = format!("{x}");
        return if fixed.contains('.') { fixed } else { fixed + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn scalar(value: &Value) -> Option<String> {
    match value.kind() {
        ValueKind::None => Some("None".into()),
        ValueKind::Bool => Some(if value.is_true() { "True".into() } else { "False".into() }),
        ValueKind::Number if value.is_integer() => Some(value.to_string()),
        ValueKind::Number => f64::try_from(value.clone()).ok().map(float_repr),
        _ => None,
    }
}

/// str(): what {{ value }} shows.
pub fn str_of(value: &Value) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_string());
    }
    if value.is_undefined() {
        return Ok(String::new());
    }
    repr_of(value)
}

pub fn repr_of(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    write_repr(value, &mut out)?;
    charge(out.len())?;
    Ok(out)
}

fn write_repr(value: &Value, out: &mut String) -> Result<(), Error> {
    if let Some(text) = value.as_str() {
        write_str_repr(text, out);
    } else if let Some(text) = scalar(value) {
        out.push_str(&text);
    } else if is_sequence(value) {
        let tuple = value.is_tuple();
        out.push(if tuple { '(' } else { '[' });
        for (index, item) in value.try_iter()?.enumerate() {
            out.push_str(if index > 0 { ", " } else { "" });
            write_repr(&item, out)?;
        }
        out.push_str(if tuple && value.len() == Some(1) { "," } else { "" });
        out.push(if tuple { ')' } else { ']' });
    } else if value.kind() == ValueKind::Map {
        out.push('{');
        for (index, (key, item)) in pairs(value)?.iter().enumerate() {
            out.push_str(if index > 0 { ", " } else { "" });
            write_repr(key, out)?;
            out.push_str(": ");
            write_repr(item, out)?;
        }
        out.push('}');
    } else {
        out.push_str(&value.to_string());
    }
    charge(16)
}

fn push_like(like: char, text: &str, out: &mut String) {
    out.extend(text.chars().map(|c| marked_like(like, c)));
}

/// The characters that mean something in HTML as their escapes, marked as they were.
pub fn push_html(text: &str, out: &mut String) {
    for c in text.chars() {
        match plain(c) {
            '&' => push_like(c, "&amp;", out),
            '<' => push_like(c, "&lt;", out),
            '>' => push_like(c, "&gt;", out),
            '\'' => push_like(c, "&#39;", out),
            '"' => push_like(c, "&#34;", out),
            _ => out.push(c),
        }
    }
}

/// str.isprintable(). The library has the table, but only shows it through its own escapes.
fn is_printable(c: char) -> bool {
    c == '"'
        || c == '\''
        || is_marked(c)
        || ['a', c].iter().collect::<String>().escape_debug().count() == 2
}

fn write_str_repr(text: &str, out: &mut String) {
    let has = |quote| text.chars().any(|c| plain(c) == quote);
    let quote = if has('\'') && !has('"') { '"' } else { '\'' };
    out.push(quote);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if let Some(code) = rest.clone().next().and_then(|low| paired(c, low)) {
            rest.next();
            push_like(c, &format!("\\U{code:08x}"), out);
            continue;
        }
        match plain(c) {
            p if p == quote || p == '\\' => push_like(c, &format!("\\{p}"), out),
            '\n' => push_like(c, "\\n", out),
            '\r' => push_like(c, "\\r", out),
            '\t' => push_like(c, "\\t", out),
            p if !is_printable(p) => {
                let escape = match p as u32 {
                    code @ ..0x100 => format!("\\x{code:02x}"),
                    code @ ..0x1_0000 => format!("\\u{code:04x}"),
                    code => format!("\\U{code:08x}"),
                };
                push_like(c, &escape, out);
            }
            _ => out.push(c),
        }
    }
    out.push(quote);
}

/// The options of json.dumps that templates may set.
pub struct JsonStyle {
    pub ensure_ascii: bool,
    pub indent: Option<usize>,
    pub item_separator: String,
    pub key_separator: String,
    pub sort_keys: bool,
}

impl JsonStyle {
    fn newline(&self, depth: usize, out: &mut String) -> Result<(), Error> {
        if let Some(width) = self.indent {
            charge(width.saturating_mul(depth))?;
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', width * depth));
        }
        Ok(())
    }

    pub fn write(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        charge(value.as_str().map_or(0, str::len))?;
        if let Some(text) = value.as_str() {
            self.write_string(text, out);
        } else if is_sequence(value) {
            let items: Vec<Value> = value.try_iter()?.collect();
            self.write_group(('[', ']'), items.len(), depth, out, |index, out| {
                self.write(&items[index], depth + 1, out)
            })?;
        } else if value.kind() == ValueKind::Map {
            let mut members = pairs(value)?;
            if self.sort_keys {
                members.sort_by(|a, b| order(&a.0, &b.0).unwrap_or(std::cmp::Ordering::Equal));
            }
            self.write_group(('{', '}'), members.len(), depth, out, |index, out| {
                let (key, item) = &members[index];
                self.write_key(key, out)?;
                out.push_str(&self.key_separator);
                self.write(item, depth + 1, out)
            })?;
        } else {
            out.push_str(&json_scalar(value)?);
        }
        Ok(())
    }

    fn write_group(
        &self,
        brackets: (char, char),
        size: usize,
        depth: usize,
        out: &mut String,
        mut write_one: impl FnMut(usize, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        out.push(brackets.0);
        for index in 0..size {
            if index > 0 {
                out.push_str(&self.item_separator);
            }
            self.newline(depth + 1, out)?;
            write_one(index, out)?;
        }
        if size > 0 {
            self.newline(depth, out)?;
        }
        out.push(brackets.1);
        Ok(())
    }

    fn write_key(&self, key: &Value, out: &mut String) -> Result<(), Error> {
        match key.as_str() {
            Some(text) => self.write_string(text, out),
            None => self.write_string(&json_scalar(key)?, out),
        }
        Ok(())
    }

    fn write_string(&self, text: &str, out: &mut String) {
        out.push('"');
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match plain(c) {
                '"' => push_like(c, "\\\"", out),
                '\\' => push_like(c, "\\\\", out),
                '\n' => push_like(c, "\\n", out),
                '\r' => push_like(c, "\\r", out),
                '\t' => push_like(c, "\\t", out),
                '\x08' => push_like(c, "\\b", out),
                '\x0c' => push_like(c, "\\f", out),
                p if (p as u32) < 0x20 || (self.ensure_ascii && !p.is_ascii()) => {
                    let pair = rest.clone().next().and_then(|low| paired(c, low));
                    let code = pair.and_then(char::from_u32).unwrap_or(p);
                    if pair.is_some() {
                        rest.next();
                    }
                    for unit in code.encode_utf16(&mut [0; 2]) {
                        push_like(c, &format!("\\u{unit:04x}"), out);
                    }
                }
                _ => out.push(c),
            }
        }
        out.push('"');
    }
}

fn json_scalar(value: &Value) -> Result<String, Error> {
    Ok(match value.kind() {
        ValueKind::None => "null".into(),
        ValueKind::Bool => if value.is_true() { "true" } else { "false" }.into(),
        ValueKind::Number => match scalar(value).unwrap_or_default().as_str() {
            "nan" => "NaN".into(),
            "inf" => "Infinity".into(),
            "-inf" => "-Infinity".into(),
            text => text.into(),
        },
        other => return fail(format!("{other} is not JSON serializable")),
    })
}
