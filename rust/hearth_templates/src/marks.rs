// SPDX-License-Identifier: Apache-2.0
// Marks: how text from a message is told from text of the template, character by character.

// C++ sends every character of a message as its twin in planes that Unicode leaves unassigned
// (src/templates/marks.h has the table). A twin keeps its identity through joining, slicing and
// repeating; everything here that looks at characters looks at their plain side and gives back
// the very characters it was given. Nothing in this crate turns a twin into a plain character of
// a string that a template can see: that is what makes special tokens unforgeable.

const FIRST_TWIN: u32 = 0x4_0000; // planes 4-7 are the twins of planes 0-3
const HIGH_TWIN: u32 = 0x8_0000; // planes 8-10 are the twins of planes 14-16
const FIRST_OTHER: u32 = 0xB_0000; // planes 11-13: pieces of rarer characters and broken bytes
const LOW_OTHER: u32 = 0xC_0000;
const END_MARKS: u32 = 0xE_0000;
const HIGH_SHIFT: u32 = 0x6_0000;

pub fn is_marked(c: char) -> bool {
    (FIRST_TWIN..END_MARKS).contains(&(c as u32))
}

/// What the character looks like to the template.
pub fn plain(c: char) -> char {
    let code = c as u32;
    let twin = match code {
        FIRST_TWIN..HIGH_TWIN => code - FIRST_TWIN,
        HIGH_TWIN..FIRST_OTHER => code + HIGH_SHIFT,
        _ => code,
    };
    char::from_u32(twin).unwrap_or(c)
}

/// The code point that two marks stand for, one of those Unicode has not assigned.
pub fn paired(high: char, low: char) -> Option<u32> {
    let high = (high as u32).checked_sub(FIRST_OTHER).filter(|&high| high < 0x280)?;
    let low = (low as u32).checked_sub(LOW_OTHER).filter(|&low| low < 0x400)?;
    Some(FIRST_TWIN + (high << 10 | low))
}

/// `c` with the marks of `like`: for characters made from another one (case, escapes).
pub fn marked_like(like: char, c: char) -> char {
    if !is_marked(like) || is_marked(c) {
        return c;
    }
    let code = c as u32;
    let twin = if code < FIRST_TWIN { code + FIRST_TWIN } else { code - HIGH_SHIFT };
    char::from_u32(twin).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The plain side of a text, for comparing and looking up. Never for giving back.
pub fn plain_text(text: &str) -> std::borrow::Cow<'_, str> {
    if text.chars().any(is_marked) {
        text.chars().map(plain).collect::<String>().into()
    } else {
        text.into()
    }
}

/// Spaces as Python's str.strip() and str.split() see them.
pub fn is_space(c: char) -> bool {
    let c = plain(c);
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}
