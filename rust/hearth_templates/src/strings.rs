// SPDX-License-Identifier: Apache-2.0
// The methods of Python's str. Each works on characters as they came and compares plain sides.
use crate::args::Args;
use crate::budget::charge;
use crate::marks::{is_space, marked_like, plain};
use crate::text::str_of;
use crate::values::{fail, items};
use minijinja::value::Tuple;
use minijinja::{Error, ErrorKind, Value};

type Chars = Vec<char>;

fn chars(text: &str) -> Chars {
    text.chars().collect()
}

fn value(chars: &[char]) -> Value {
    Value::from(chars.iter().collect::<String>())
}

fn same(a: &[char], b: &[char]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| plain(*x) == plain(*y))
}

/// Every start of `part`, not overlapping. Linear in both, whatever they hold.
fn find_all(text: &[char], part: &[char], limit: usize) -> Vec<usize> {
    let plain_side = |chars: &[char]| chars.iter().map(|c| plain(*c)).collect::<String>();
    let (text, part) = (plain_side(text), plain_side(part));
    let (mut found, mut at_byte, mut at_char) = (Vec::new(), 0, 0);
    for (byte, _) in text.match_indices(&part).take(limit) {
        at_char += text[at_byte..byte].chars().count();
        at_byte = byte;
        found.push(at_char);
    }
    found
}

pub fn strip(text: &str, set: Option<&str>, left: bool, right: bool) -> String {
    let text = chars(text);
    let set: Option<Chars> = set.map(|s| s.chars().map(plain).collect());
    let drop = |c: &char| set.as_ref().map_or_else(|| is_space(*c), |s| s.contains(&plain(*c)));
    let mut part = &text[..];
    while left && part.first().is_some_and(drop) {
        part = &part[1..];
    }
    while right && part.last().is_some_and(drop) {
        part = &part[..part.len() - 1];
    }
    part.iter().collect()
}

fn split_spaces(text: &[char], limit: usize) -> Result<Vec<Value>, Error> {
    let mut parts = Vec::new();
    let mut at = 0;
    loop {
        while at < text.len() && is_space(text[at]) {
            at += 1;
        }
        if at == text.len() {
            return Ok(parts);
        }
        if parts.len() == limit {
            let rest: String = text[at..].iter().collect();
            parts.push(Value::from(strip(&rest, None, false, true)));
            return Ok(parts);
        }
        let start = at;
        while at < text.len() && !is_space(text[at]) {
            at += 1;
        }
        parts.push(value(&text[start..at]));
        charge(size_of::<Value>() * 2)?;
    }
}

fn limit(args: &Args, place: usize, name: &str) -> Result<usize, Error> {
    let given = args.integer(place, name)?.unwrap_or(-1);
    Ok(usize::try_from(given).unwrap_or(usize::MAX))
}

fn split(text: &str, args: &Args, from_right: bool) -> Result<Value, Error> {
    let limit = limit(args, 1, "maxsplit")?;
    let text = chars(text);
    let Some(separator) = args.text(0, "sep")? else {
        if from_right && limit != usize::MAX {
            return fail("rsplit by spaces with a limit is not supported");
        }
        return Ok(Value::from(split_spaces(&text, limit)?));
    };
    let separator = chars(&separator);
    if separator.is_empty() {
        return fail("empty separator");
    }
    let found = if from_right {
        // From the right, overlapping places differ from those found from the left.
        let reversed = |c: &[char]| c.iter().rev().copied().collect::<Chars>();
        let mut found = find_all(&reversed(&text), &reversed(&separator), limit);
        found.iter_mut().for_each(|at| *at = text.len() - *at - separator.len());
        found.reverse();
        found
    } else {
        find_all(&text, &separator, limit)
    };
    let mut parts = Vec::with_capacity(found.len() + 1);
    let mut start = 0;
    for at in found {
        parts.push(value(&text[start..at]));
        start = at + separator.len();
    }
    parts.push(value(&text[start..]));
    charge(parts.len() * 32)?;
    Ok(Value::from(parts))
}

fn split_lines(text: &str, keep_ends: bool) -> Vec<Value> {
    let text = chars(text);
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < text.len() {
        let end = at;
        let is_break = matches!(
            plain(text[at]),
            '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}'
        );
        at += 1;
        if is_break {
            if plain(text[end]) == '\r' && text.get(at).is_some_and(|c| plain(*c) == '\n') {
                at += 1;
            }
            parts.push(value(&text[start..if keep_ends { at } else { end }]));
            start = at;
        }
    }
    if start < text.len() {
        parts.push(value(&text[start..]));
    }
    parts
}

pub fn replace(text: &str, old: &str, new: &str, limit: usize) -> Result<String, Error> {
    let (text, old) = (chars(text), chars(old));
    let found = if old.is_empty() {
        (0..=text.len()).take(limit).collect()
    } else {
        find_all(&text, &old, limit)
    };
    charge(found.len().saturating_mul(new.len() + 1))?;
    let mut out = String::new();
    let mut start = 0;
    for at in found {
        out.extend(&text[start..at]);
        out.push_str(new);
        start = at + old.len();
    }
    out.extend(&text[start..]);
    Ok(out)
}

pub fn upper(text: &str) -> String {
    text.chars().flat_map(|c| plain(c).to_uppercase().map(move |u| marked_like(c, u))).collect()
}

pub fn lower(text: &str) -> String {
    // A capital sigma depends on its neighbours; the library knows how, for whole strings.
    let whole = text.chars().map(plain).collect::<String>().to_lowercase();
    let mut whole = whole.chars();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        for _ in plain(c).to_lowercase() {
            out.extend(whole.next().map(|l| marked_like(c, l)));
        }
    }
    out
}

pub fn capitalize(text: &str) -> String {
    let lowered = lower(text);
    let mut rest = lowered.chars();
    match rest.next() {
        Some(first) => upper(first.encode_utf8(&mut [0; 4])) + rest.as_str(),
        None => lowered,
    }
}

pub fn title(text: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in text.chars() {
        let mut bytes = [0; 4];
        let one: &str = c.encode_utf8(&mut bytes);
        out.push_str(&if inside { lower(one) } else { upper(one) });
        inside = plain(c).is_alphabetic();
    }
    out
}

pub fn center(text: &str, width: usize) -> Result<String, Error> {
    charge(width)?;
    let missing = width.saturating_sub(text.chars().count());
    let left = missing / 2 + (missing & width & 1);
    Ok(" ".repeat(left) + text + &" ".repeat(missing - left))
}

/// startswith and endswith take one string or several.
fn any_edge(args: &Args, test: impl Fn(&[char]) -> bool) -> Result<Value, Error> {
    let wanted = args.need(0, "prefix")?;
    let all = if wanted.as_str().is_some() { vec![wanted] } else { items(&wanted)? };
    for one in all {
        let Some(text) = one.as_str() else { return fail("expected a string") };
        if test(&chars(text)) {
            return Ok(Value::from(true));
        }
    }
    Ok(Value::from(false))
}

fn remove_edge(text: &str, args: &Args, prefix: bool) -> Result<Value, Error> {
    let (all, part) = (chars(text), chars(&args.need_text(0, "affix")?));
    let keep = all.len().saturating_sub(part.len());
    let edge = if prefix { &all[..all.len() - keep] } else { &all[keep..] };
    Ok(match (same(edge, &part), prefix) {
        (false, _) => Value::from(text),
        (true, true) => value(&all[part.len()..]),
        (true, false) => value(&all[..keep]),
    })
}

fn partition(text: &str, args: &Args, from_right: bool) -> Result<Value, Error> {
    let (text, separator) = (chars(text), chars(&args.need_text(0, "sep")?));
    let found = find_all(&text, &separator, usize::MAX);
    let at = if from_right { found.last() } else { found.first() };
    let parts = match at {
        Some(&at) => {
            let end = at + separator.len();
            [value(&text[..at]), value(&text[at..end]), value(&text[end..])]
        }
        None if from_right => [Value::from(""), Value::from(""), value(&text)],
        None => [value(&text), Value::from(""), Value::from("")],
    };
    Ok(Value::from(Tuple::from(parts.to_vec())))
}

fn all_chars(text: &str, test: impl Fn(char) -> bool) -> Value {
    Value::from(!text.is_empty() && text.chars().all(|c| test(plain(c))))
}

fn pad(text: &str, args: &Args, left: bool) -> Result<Value, Error> {
    let width = usize::try_from(args.integer(0, "width")?.unwrap_or(0)).unwrap_or(0);
    charge(width)?;
    let fill = args.text(1, "fillchar")?.unwrap_or_else(|| " ".into());
    let padding = fill.repeat(width.saturating_sub(text.chars().count()));
    Ok(Value::from(if left { padding + text } else { text.to_string() + &padding }))
}

fn place(text: &str, args: &Args, from_right: bool) -> Result<Option<usize>, Error> {
    let found = find_all(&chars(text), &chars(&args.need_text(0, "sub")?), usize::MAX);
    Ok(if from_right { found.last() } else { found.first() }.copied())
}

pub fn join(separator: &str, parts: &Value) -> Result<String, Error> {
    let mut out = String::new();
    for (index, part) in items(parts)?.iter().enumerate() {
        let part = str_of(part)?;
        charge(part.len() + separator.len())?;
        if index > 0 {
            out.push_str(separator);
        }
        out.push_str(&part);
    }
    Ok(out)
}

/// str.format with places and names only; what Python can do beyond that, templates do not use.
fn format(text: &str, args: &Args) -> Result<String, Error> {
    let mut out = String::new();
    let mut next_place = 0;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let doubled = rest.peek() == Some(&c);
        match c {
            '{' | '}' if doubled => {
                rest.next();
                out.push(c);
            }
            '{' => {
                let field: String = rest.by_ref().take_while(|&c| c != '}').collect();
                let place = if field.is_empty() { Some(next_place) } else { field.parse().ok() };
                next_place += 1;
                let found = match place {
                    Some(place) => args.rest(place).first().cloned(),
                    None => args.named(&field),
                };
                let Some(value) = found else { return fail("format: no such argument") };
                let shown = str_of(&value)?;
                charge(shown.len())?;
                out.push_str(&shown);
            }
            '}' => return fail("format: single '}'"),
            _ => out.push(c),
        }
    }
    Ok(out)
}

/// One of the methods of str, by name.
pub fn method(text: &str, name: &str, args: &Args) -> Result<Value, Error> {
    charge(text.len())?;
    let all = || chars(text);
    Ok(match name {
        "strip" => strip(text, args.text(0, "chars")?.as_deref(), true, true).into(),
        "lstrip" => strip(text, args.text(0, "chars")?.as_deref(), true, false).into(),
        "rstrip" => strip(text, args.text(0, "chars")?.as_deref(), false, true).into(),
        "split" => split(text, args, false)?,
        "rsplit" => split(text, args, true)?,
        "splitlines" => Value::from(split_lines(text, args.truth(0, "keepends"))),
        "partition" => partition(text, args, false)?,
        "rpartition" => partition(text, args, true)?,
        "replace" => {
            let (old, new) = (args.need_text(0, "old")?, args.need_text(1, "new")?);
            replace(text, &old, &new, limit(args, 2, "count")?)?.into()
        }
        "startswith" => any_edge(args, |p| all().len() >= p.len() && same(&all()[..p.len()], p))?,
        "endswith" => any_edge(args, |p| {
            let all = all();
            all.len() >= p.len() && same(&all[all.len() - p.len()..], p)
        })?,
        "removeprefix" | "removesuffix" => remove_edge(text, args, name == "removeprefix")?,
        "format" => format(text, args)?.into(),
        "upper" => upper(text).into(),
        "lower" | "casefold" => lower(text).into(),
        "title" => title(text).into(),
        "capitalize" => capitalize(text).into(),
        "join" => join(text, &args.need(0, "iterable")?)?.into(),
        "find" => Value::from(place(text, args, false)?.map_or(-1, |at| at as i64)),
        "rfind" => Value::from(place(text, args, true)?.map_or(-1, |at| at as i64)),
        "index" => match place(text, args, false)? {
            Some(at) => Value::from(at),
            None => return fail("substring not found"),
        },
        "count" => {
            let part = chars(&args.need_text(0, "sub")?);
            Value::from(find_all(&all(), &part, usize::MAX).len())
        }
        "isdigit" | "isdecimal" => all_chars(text, |c| c.is_ascii_digit()),
        "isnumeric" => all_chars(text, char::is_numeric),
        "isalpha" => all_chars(text, char::is_alphabetic),
        "isalnum" => all_chars(text, char::is_alphanumeric),
        "isspace" => all_chars(text, is_space),
        "isupper" => Value::from(upper(text) == text && lower(text) != text),
        "islower" => Value::from(lower(text) == text && upper(text) != text),
        "ljust" => pad(text, args, false)?,
        "rjust" => pad(text, args, true)?,
        "center" => center(text, limit(args, 0, "width")?)?.into(),
        _ => return Err(Error::new(ErrorKind::UnknownMethod, format!("str has no {name}"))),
    })
}
