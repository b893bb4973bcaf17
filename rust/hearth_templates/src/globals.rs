// SPDX-License-Identifier: Apache-2.0
// The tests of Jinja (`x is string`) and its global functions, as transformers sets them up.
use crate::args::{callable, Args};
use crate::budget::{charge, now};
use crate::marks::plain_text;
use crate::text::str_of;
use crate::values::{fail, is_sequence, pairs, Dict};
use minijinja::value::ValueKind;
use minijinja::{Environment, Error, State, Value};

type Made = Result<Value, Error>;
type Test = fn(&Value) -> bool;

fn add_test(env: &mut Environment, name: &'static str, test: Test) {
    env.add_test(name, move |value: Value| test(&value));
}

fn has_items(value: &Value) -> bool {
    value.as_str().is_some() || value.is_undefined() || (value.len().is_some() && !value.is_none())
}

fn parity(value: &Value) -> Option<i64> {
    value.as_i64().map(|number| number.rem_euclid(2))
}

pub fn add_to(env: &mut Environment) {
    add_test(env, "defined", |v| !v.is_undefined());
    add_test(env, "undefined", |v| v.is_undefined());
    add_test(env, "none", |v| v.is_none() && !v.is_undefined());
    add_test(env, "string", |v| v.as_str().is_some());
    add_test(env, "boolean", |v| v.kind() == ValueKind::Bool);
    add_test(env, "true", |v| v.kind() == ValueKind::Bool && v.is_true());
    add_test(env, "false", |v| v.kind() == ValueKind::Bool && !v.is_true());
    // Python's bool is a number.
    add_test(env, "number", |v| v.is_number() || v.kind() == ValueKind::Bool);
    add_test(env, "integer", |v| v.is_integer());
    add_test(env, "float", |v| v.is_number() && !v.is_integer());
    add_test(env, "mapping", |v| v.downcast_object_ref::<Dict>().is_some());
    // Whatever has a length and items: dictionaries, strings and the undefined included.
    add_test(env, "sequence", has_items);
    add_test(env, "iterable", |v| has_items(v) || is_sequence(v));
    add_test(env, "callable", |v| v.kind() == ValueKind::Plain);
    add_test(env, "odd", |v| parity(v) == Some(1));
    add_test(env, "even", |v| parity(v) == Some(0));
    add_test(env, "upper", |v| v.as_str().is_some_and(|t| crate::strings::upper(t) == t));
    add_test(env, "lower", |v| v.as_str().is_some_and(|t| crate::strings::lower(t) == t));
    env.add_test("divisibleby", |value: i64, by: i64| value.checked_rem(by) == Some(0));
    env.add_test("sameas", |a: Value, b: Value| {
        a.kind() == b.kind() && crate::values::equal(&a, &b)
    });
    for (name, operator) in [
        ("eq", "=="),
        ("equalto", "=="),
        ("==", "=="),
        ("ne", "!="),
        ("!=", "!="),
        ("lt", "<"),
        ("lessthan", "<"),
        ("<", "<"),
        ("le", "<="),
        ("<=", "<="),
        ("gt", ">"),
        ("greaterthan", ">"),
        (">", ">"),
        ("ge", ">="),
        (">=", ">="),
        ("in", "@in"),
    ] {
        env.add_test(name, move |state: &mut State, a: Value, b: Value| {
            state.apply_filter(operator, &[a, b]).map(|value| value.is_true())
        });
    }
    env.add_function("raise_exception", callable(raise_exception));
    env.add_function("strftime_now", callable(strftime_now));
    env.add_function("range", callable(range));
    env.add_function("dict", callable(dict));
    env.add_function("namespace", minijinja::functions::namespace);
}

fn raise_exception(_: &mut State, args: &Args) -> Made {
    // The text may quote a message: it goes to a human, so plain.
    fail(plain_text(&str_of(&args.need(0, "message")?)?).into_owned())
}

fn range(_: &mut State, args: &Args) -> Made {
    let number = |place| match args.integer(place, "range")? {
        Some(number) => Ok(number),
        None => fail("range needs integers"),
    };
    let (start, stop, step) = match args.len() {
        1 => (0, number(0)?, 1),
        2 => (number(0)?, number(1)?, 1),
        _ => (number(0)?, number(1)?, number(2)?),
    };
    if step == 0 {
        return fail("range step cannot be zero");
    }
    let span = i128::from(stop) - i128::from(start);
    let count = if (span > 0) == (step > 0) {
        (span.abs() + i128::from(step).abs() - 1) / i128::from(step).abs()
    } else {
        0
    };
    // The limit of Jinja's sandbox.
    if count > 100_000 {
        return Err(crate::budget::out_of("range of more than 100000"));
    }
    charge(count as usize * size_of::<Value>())?;
    Ok((0..count as i64).map(|index| Value::from(start + index * step)).collect())
}

fn dict(_: &mut State, args: &Args) -> Made {
    let mut dict = Dict::default();
    if let Some(value) = args.rest(0).first() {
        for (key, item) in pairs(value)? {
            dict.put(key, item);
        }
    }
    for (key, item) in args.names() {
        dict.put(Value::from(key.as_str()), item.clone());
    }
    Ok(Value::from_object(dict))
}

/// Year, month, day of a day counted from 1970 (the civil calendar; days-from-civil inverted).
fn civil(days: i64) -> (i64, usize, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as usize, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

fn strftime_now(_: &mut State, args: &Args) -> Made {
    let seconds = now();
    let (days, clock) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    let (month_name, day_name) = (MONTHS[month - 1], DAYS[days.rem_euclid(7) as usize]);
    let mut out = String::new();
    let format = args.need_text(0, "format")?;
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('Y') => out += &format!("{year:04}"),
            Some('y') => out += &format!("{:02}", year.rem_euclid(100)),
            Some('m') => out += &format!("{month:02}"),
            Some('d') => out += &format!("{day:02}"),
            Some('H') => out += &format!("{hour:02}"),
            Some('I') => out += &format!("{:02}", (hour + 11) % 12 + 1),
            Some('M') => out += &format!("{minute:02}"),
            Some('S') => out += &format!("{second:02}"),
            Some('p') => out += if hour < 12 { "AM" } else { "PM" },
            Some('B') => out += month_name,
            Some('b') => out += &month_name[..3],
            Some('A') => out += day_name,
            Some('a') => out += &day_name[..3],
            Some('-') => match chars.next() {
                Some('d') => out += &day.to_string(),
                Some('m') => out += &month.to_string(),
                _ => return fail("strftime_now: unknown directive"),
            },
            Some('%') => out.push('%'),
            _ => return fail("strftime_now: unknown directive"),
        }
    }
    Ok(Value::from(out))
}
