// SPDX-License-Identifier: Apache-2.0
// The filters of Jinja that chat templates use, with Jinja's own results.
use crate::args::{callable, Args};
use crate::budget::charge;
use crate::marks::plain_text;
use crate::strings;
use crate::text::{str_of, JsonStyle};
use crate::values::{equal, fail, items, order, pairs, Dict};
use minijinja::value::{Tuple, ValueKind};
use minijinja::{Environment, Error, State, Value};
use std::cmp::Ordering;

type Made = Result<Value, Error>;

fn subject(args: &Args) -> Result<String, Error> {
    let text = str_of(&args.need(0, "value")?)?;
    charge(text.len())?;
    Ok(text)
}

fn to_json(_: &mut State, args: &Args) -> Made {
    let indent = args.integer(2, "indent")?.map(|width| usize::try_from(width).unwrap_or(0));
    let mut style = JsonStyle {
        ensure_ascii: args.truth(1, "ensure_ascii"),
        indent,
        item_separator: if indent.is_some() { "," } else { ", " }.into(),
        key_separator: ": ".into(),
        sort_keys: args.truth(4, "sort_keys"),
    };
    if let Some(separators) = args.get(3, "separators").filter(|value| !value.is_none()) {
        let separators = items(&separators)?;
        let [item, key] = &separators[..] else { return fail("separators must be two") };
        (style.item_separator, style.key_separator) = (str_of(item)?, str_of(key)?);
    }
    let mut out = String::new();
    style.write(&args.need(0, "value")?, 0, &mut out)?;
    Ok(Value::from(out))
}

fn length(_: &mut State, args: &Args) -> Made {
    let value = args.need(0, "value")?;
    if let Some(text) = value.as_str() {
        return Ok(Value::from(text.chars().count()));
    }
    if value.is_undefined() {
        return Ok(Value::from(0));
    }
    value.len().map_or_else(|| fail(format!("{} has no length", value.kind())), |n| Ok(n.into()))
}

fn default(_: &mut State, args: &Args) -> Made {
    let value = args.need(0, "value")?;
    let replaced = value.is_undefined() || (args.truth(2, "boolean") && !value.is_true());
    Ok(if replaced { args.get(1, "default_value").unwrap_or_else(|| "".into()) } else { value })
}

fn list(_: &mut State, args: &Args) -> Made {
    Ok(Value::from(items(&args.need(0, "value")?)?))
}

fn item_pairs(_: &mut State, args: &Args) -> Made {
    let made = pairs(&args.need(0, "value")?)?.into_iter();
    Ok(made.map(|(key, value)| Value::from(Tuple::from(vec![key, value]))).collect())
}

/// Jinja sorts text without regard to case unless told.
fn fold(value: &Value, case_sensitive: bool) -> Value {
    match value.as_str() {
        Some(text) if !case_sensitive => Value::from(strings::lower(text)),
        _ => value.clone(),
    }
}

fn sort_by_key(list: &mut [(Value, Value)], reverse: bool) -> Result<(), Error> {
    charge(list.len().saturating_mul(64))?;
    let mut failure = None;
    list.sort_by(|a, b| {
        let found = order(&a.0, &b.0).unwrap_or_else(|error| {
            failure = Some(error);
            Ordering::Equal
        });
        if reverse {
            found.reverse()
        } else {
            found
        }
    });
    failure.map_or(Ok(()), Err)
}

fn dict_sort(_: &mut State, args: &Args) -> Made {
    let by_value = args.text(2, "by")?.is_some_and(|by| by == "value");
    let mut list: Vec<(Value, Value)> = pairs(&args.need(0, "value")?)?
        .into_iter()
        .map(|(key, value)| {
            let sort_key =
                fold(if by_value { &value } else { &key }, args.truth(1, "case_sensitive"));
            (sort_key, Value::from(Tuple::from(vec![key, value])))
        })
        .collect();
    sort_by_key(&mut list, args.truth(3, "reverse"))?;
    Ok(list.into_iter().map(|(_, pair)| pair).collect())
}

/// `a.b.0` of a value, as the attribute arguments of filters mean it.
fn path(value: &Value, path: &Value) -> Made {
    if path.as_i64().is_some() {
        return value.get_item(path);
    }
    let mut value = value.clone();
    for part in plain_text(path.as_str().unwrap_or_default()).split('.') {
        if value.is_undefined() {
            return fail(format!("undefined has no {part}"));
        }
        value = match part.parse::<usize>() {
            Ok(index) => value.get_item(&Value::from(index))?,
            Err(_) => value.get_attr(part)?,
        };
    }
    Ok(value)
}

fn sort(_: &mut State, args: &Args) -> Made {
    let attribute = args.get(3, "attribute").filter(|value| !value.is_none());
    let mut list = Vec::new();
    for item in items(&args.need(0, "value")?)? {
        let key = match &attribute {
            Some(attribute) => path(&item, attribute)?,
            None => item.clone(),
        };
        list.push((fold(&key, args.truth(2, "case_sensitive")), item));
    }
    sort_by_key(&mut list, args.truth(1, "reverse"))?;
    Ok(list.into_iter().map(|(_, item)| item).collect())
}

fn unique(_: &mut State, args: &Args) -> Made {
    let mut kept: Vec<(Value, Value)> = Vec::new();
    for item in items(&args.need(0, "value")?)? {
        let key = fold(&item, args.truth(1, "case_sensitive"));
        charge(kept.len().saturating_mul(4))?;
        if !kept.iter().any(|(other, _)| equal(other, &key)) {
            kept.push((key, item));
        }
    }
    Ok(kept.into_iter().map(|(_, item)| item).collect())
}

fn map(state: &mut State, args: &Args) -> Made {
    let list = items(&args.need(0, "value")?)?;
    if let Some(attribute) = args.named("attribute") {
        let fallback = args.named("default");
        let one = |item: &Value| {
            let found = path(item, &attribute)?;
            Ok(match &fallback {
                Some(value) if found.is_undefined() => value.clone(),
                _ => found,
            })
        };
        return list.iter().map(one).collect::<Result<Vec<Value>, Error>>().map(Value::from);
    }
    let name = args.need_text(1, "filter")?;
    let mut made = Vec::with_capacity(list.len());
    for item in list {
        let mut inner = vec![item];
        inner.extend_from_slice(args.rest(2));
        made.push(state.apply_filter(&plain_text(&name), &inner)?);
    }
    Ok(Value::from(made))
}

/// select, reject, selectattr and rejectattr: which items pass a test.
fn pick(state: &mut State, args: &Args, by_attribute: bool, wanted: bool) -> Made {
    let first = if by_attribute { 2 } else { 1 };
    let test = args.text(first, "test")?;
    let mut kept = Vec::new();
    for item in items(&args.need(0, "value")?)? {
        let tested =
            if by_attribute { path(&item, &args.need(1, "attribute")?)? } else { item.clone() };
        let passes = match &test {
            Some(name) => {
                let mut inner = vec![tested];
                inner.extend_from_slice(args.rest(first + 1));
                state.perform_test(&plain_text(name), &inner)?
            }
            None => tested.is_true(),
        };
        if passes == wanted {
            kept.push(item);
        }
    }
    Ok(Value::from(kept))
}

fn extreme(args: &Args, wanted: Ordering) -> Made {
    let mut best = Value::UNDEFINED;
    for item in items(&args.need(0, "value")?)? {
        if best.is_undefined() || order(&fold(&item, false), &fold(&best, false))? == wanted {
            best = item;
        }
    }
    Ok(best)
}

fn sum(state: &mut State, args: &Args) -> Made {
    let mut total = args.get(2, "start").unwrap_or_else(|| Value::from(0));
    for item in items(&args.need(0, "value")?)? {
        let item = match args.get(1, "attribute") {
            Some(attribute) => path(&item, &attribute)?,
            None => item,
        };
        total = state.apply_filter("+", &[total, item])?;
    }
    Ok(total)
}

fn join(_: &mut State, args: &Args) -> Made {
    let mut value = args.need(0, "value")?;
    if let Some(attribute) = args.get(2, "attribute") {
        let list = items(&value)?;
        value =
            list.iter().map(|item| path(item, &attribute)).collect::<Result<Vec<_>, _>>()?.into();
    }
    let separator = args.get(1, "d").map_or(Ok(String::new()), |d| str_of(&d))?;
    Ok(Value::from(strings::join(&separator, &value)?))
}

fn indent(_: &mut State, args: &Args) -> Made {
    let text = subject(args)?;
    let pad = match args.get(1, "width") {
        Some(width) if width.as_str().is_some() => str_of(&width)?,
        width => {
            let width = width.and_then(|w| w.as_usize()).unwrap_or(4);
            charge(width)?;
            " ".repeat(width)
        }
    };
    let (first, blank) = (args.truth(2, "first"), args.truth(3, "blank"));
    let mut out = String::new();
    for (index, line) in plain_lines(&text).enumerate() {
        charge(pad.len())?;
        if index > 0 {
            out.push(line.0);
        }
        if (index == 0 && first) || (index > 0 && (blank || !line.1.is_empty())) {
            out.push_str(&pad);
        }
        out.push_str(line.1);
    }
    Ok(Value::from(out))
}

/// Lines with the newline (as it came) before each.
fn plain_lines(text: &str) -> impl Iterator<Item = (char, &str)> {
    let mut rest = Some(('\n', text));
    std::iter::from_fn(move || {
        let (before, text) = rest.take()?;
        match text.char_indices().find(|(_, c)| crate::marks::plain(*c) == '\n') {
            Some((at, c)) => {
                rest = Some((c, &text[at + c.len_utf8()..]));
                Some((before, &text[..at]))
            }
            None => Some((before, text)),
        }
    })
}

fn replace(_: &mut State, args: &Args) -> Made {
    let limit =
        args.integer(3, "count")?.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let (old, new) = (str_of(&args.need(1, "old")?)?, str_of(&args.need(2, "new")?)?);
    Ok(strings::replace(&subject(args)?, &old, &new, limit)?.into())
}

fn reverse(_: &mut State, args: &Args) -> Made {
    let value = args.need(0, "value")?;
    if let Some(text) = value.as_str() {
        return Ok(Value::from(text.chars().rev().collect::<String>()));
    }
    let mut list = items(&value)?;
    list.reverse();
    Ok(Value::from(list))
}

fn to_int(_: &mut State, args: &Args) -> Made {
    let value = args.need(0, "value")?;
    let parsed = match value.kind() {
        ValueKind::Bool => Some(value.is_true() as i64),
        ValueKind::Number if value.is_integer() => return Ok(value),
        ValueKind::Number => f64::try_from(value).ok().map(|x| x as i64),
        _ => value.as_str().and_then(|text| {
            let text = plain_text(text).trim().to_string();
            text.parse::<i64>().ok().or_else(|| text.parse::<f64>().ok().map(|x| x as i64))
        }),
    };
    Ok(parsed.map_or_else(|| args.get(1, "default").unwrap_or_else(|| 0.into()), Value::from))
}

fn to_float(_: &mut State, args: &Args) -> Made {
    let value = args.need(0, "value")?;
    let parsed = match value.as_str() {
        Some(text) => plain_text(text).trim().parse::<f64>().ok(),
        None => f64::try_from(value).ok(),
    };
    Ok(parsed.map_or_else(|| args.get(1, "default").unwrap_or_else(|| 0.0.into()), Value::from))
}

fn round(_: &mut State, args: &Args) -> Made {
    let value = f64::try_from(args.need(0, "value")?)?;
    let scale = 10f64.powi(args.integer(1, "precision")?.unwrap_or(0).clamp(-300, 300) as i32);
    let scaled = value * scale;
    Ok(Value::from(
        match args.text(2, "method")?.as_deref() {
            Some("ceil") => scaled.ceil(),
            Some("floor") => scaled.floor(),
            _ => scaled.round_ties_even(),
        } / scale,
    ))
}

fn batch(_: &mut State, args: &Args) -> Made {
    let size = args.integer(1, "linecount")?.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let list = items(&args.need(0, "value")?)?;
    if size == 0 {
        return fail("batch of nothing");
    }
    Ok(list.chunks(size).map(|part| Value::from(part.to_vec())).collect())
}

fn group_by(_: &mut State, args: &Args) -> Made {
    let attribute = args.need(1, "attribute")?;
    let mut list = Vec::new();
    for item in items(&args.need(0, "value")?)? {
        list.push((path(&item, &attribute)?, item));
    }
    sort_by_key(&mut list, false)?;
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for (key, item) in list {
        match groups.last_mut() {
            Some((last, members)) if equal(last, &key) => members.push(item),
            _ => groups.push((key, vec![item])),
        }
    }
    Ok(groups.into_iter().map(|(k, v)| Value::from(Tuple::from(vec![k, v.into()]))).collect())
}

fn attribute(_: &mut State, args: &Args) -> Made {
    let (value, name) = (args.need(0, "value")?, args.need_text(1, "name")?);
    // Python's attributes of a dictionary are not its members.
    if value.downcast_object_ref::<Dict>().is_some() {
        return Ok(Value::UNDEFINED);
    }
    value.get_attr(&plain_text(&name))
}

pub fn add_to(env: &mut Environment) {
    env.add_filter("tojson", callable(to_json));
    for name in ["length", "count"] {
        env.add_filter(name, callable(length));
    }
    for name in ["default", "d"] {
        env.add_filter(name, callable(default));
    }
    env.add_filter("list", callable(list));
    env.add_filter("items", callable(item_pairs));
    env.add_filter("dictsort", callable(dict_sort));
    env.add_filter("sort", callable(sort));
    env.add_filter("unique", callable(unique));
    env.add_filter("map", callable(map));
    env.add_filter("select", callable(|state, args| pick(state, args, false, true)));
    env.add_filter("reject", callable(|state, args| pick(state, args, false, false)));
    env.add_filter("selectattr", callable(|state, args| pick(state, args, true, true)));
    env.add_filter("rejectattr", callable(|state, args| pick(state, args, true, false)));
    env.add_filter("min", callable(|_, args| extreme(args, Ordering::Less)));
    env.add_filter("max", callable(|_, args| extreme(args, Ordering::Greater)));
    env.add_filter("sum", callable(sum));
    env.add_filter("join", callable(join));
    env.add_filter("indent", callable(indent));
    env.add_filter("replace", callable(replace));
    env.add_filter("reverse", callable(reverse));
    env.add_filter("int", callable(to_int));
    env.add_filter("float", callable(to_float));
    env.add_filter("round", callable(round));
    env.add_filter("batch", callable(batch));
    env.add_filter("groupby", callable(group_by));
    env.add_filter("attr", callable(attribute));
    env.add_filter(
        "first",
        callable(|_, a| Ok(items(&a.need(0, "value")?)?.first().cloned().unwrap_or_default())),
    );
    env.add_filter(
        "last",
        callable(|_, a| Ok(items(&a.need(0, "value")?)?.last().cloned().unwrap_or_default())),
    );
    add_text_filters(env);
}

fn add_text_filters(env: &mut Environment) {
    env.add_filter("string", callable(|_, args| Ok(subject(args)?.into())));
    env.add_filter("safe", callable(|_, args| Ok(Value::from_safe_string(subject(args)?))));
    env.add_filter(
        "trim",
        callable(|_, args| {
            let set = args.text(1, "chars")?;
            Ok(strings::strip(&subject(args)?, set.as_deref(), true, true).into())
        }),
    );
    env.add_filter("upper", callable(|_, args| Ok(strings::upper(&subject(args)?).into())));
    env.add_filter("lower", callable(|_, args| Ok(strings::lower(&subject(args)?).into())));
    env.add_filter("title", callable(|_, args| Ok(strings::title(&subject(args)?).into())));
    env.add_filter(
        "capitalize",
        callable(|_, args| Ok(strings::capitalize(&subject(args)?).into())),
    );
    env.add_filter("abs", |value: Value| match value.as_i64() {
        Some(number) => Ok::<Value, Error>(Value::from(number.saturating_abs())),
        None => Ok(Value::from(f64::try_from(value)?.abs())),
    });
    env.add_filter(
        "wordcount",
        callable(|_, args| Ok(Value::from(plain_text(&subject(args)?).split_whitespace().count()))),
    );
}
