// SPDX-License-Identifier: Apache-2.0
// What the C ABI stands on: a vocabulary, a grammar compiled for it, and a matcher per sequence.
use crate::counting::held;
use anyhow::{anyhow, bail, Result};
use llguidance::api::{GrammarInit, ParserLimits, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{
    ApproximateTokEnv, InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId,
};
use llguidance::{Logger, Matcher, ParserFactory};
use std::sync::{Arc, Mutex};

/// Set by the C++ side, which says why; field for field the struct of rust_abi.h.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limits {
    pub items_in_row: u64,
    pub initial_lexer_fuel: u64,
    pub step_lexer_fuel: u64,
    pub step_items: u64,
    pub lexer_states: u64,
    pub grammar_size: u64,
    pub stack_bytes: u64,
}

impl Limits {
    fn parser_limits(&self) -> ParserLimits {
        ParserLimits {
            max_items_in_row: self.items_in_row as usize,
            initial_lexer_fuel: self.initial_lexer_fuel,
            step_lexer_fuel: self.step_lexer_fuel,
            step_max_items: self.step_items as usize,
            max_lexer_states: self.lexer_states as usize,
            max_grammar_size: self.grammar_size as usize,
            // It runs large expressions against the whole vocabulary, which no fuel bounds.
            precompute_large_lexemes: false,
            verbose_errors: false,
        }
    }
}

/// The tokens as llguidance sees them. Shared by all grammars; any thread.
pub struct Vocabulary {
    factory: Arc<ParserFactory>,
}

impl Vocabulary {
    /// Special tokens are given by name; the byte 0xFF, which no text has, sets them apart.
    pub fn new(tokens: Vec<Vec<u8>>, eos: TokenId) -> Result<Vocabulary> {
        if eos as usize >= tokens.len() {
            bail!("end token {eos} is outside a vocabulary of {}", tokens.len());
        }
        let info = TokRxInfo::new(tokens.len() as u32, eos);
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(TokTrie::from(&info, &tokens)));
        let caps = InferenceCapabilities::default();
        let mut factory = ParserFactory::new(&env, caps, &SlicedBiasComputer::json_slices())?;
        factory.quiet();
        Ok(Vocabulary { factory: Arc::new(factory) })
    }
}

/// As in rust_abi.h.
pub const JSON_SCHEMA: u32 = 0;
pub const REGEX: u32 = 1;
pub const LARK: u32 = 2;

/// As in rust_abi.h: the machine is short of memory or threads, whatever the grammar is.
const NO_STACK: &str = "no memory for the stack of the grammar compiler";

/// A compiled grammar: a matcher nobody moves, to copy from.
pub struct Grammar {
    start: Mutex<Matcher>,
    bytes: usize,
}

impl Grammar {
    pub fn new(vocabulary: &Vocabulary, kind: u32, text: &str, limits: &Limits) -> Result<Grammar> {
        let factory = vocabulary.factory.clone();
        let (text, limits) = (text.to_string(), *limits);
        // On a stack of known size, whatever thread asks: the depths that C++ lets through fit it.
        std::thread::Builder::new()
            .stack_size(limits.stack_bytes as usize)
            .spawn(move || {
                let before = held();
                let mut made = Self::compile(&factory, kind, &text, &limits)?;
                made.bytes = (held() - before).max(0) as usize;
                Ok(made)
            })
            .map_err(|_| anyhow!(NO_STACK))?
            .join()
            .map_err(|_| anyhow!("the grammar compiler panicked"))?
    }

    /// The memory that it holds, which never grows: what follows a text is a copy.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn compile(f: &ParserFactory, kind: u32, text: &str, limits: &Limits) -> Result<Grammar> {
        let grammar = match kind {
            JSON_SCHEMA => TopLevelGrammar::from_json_schema(serde_json::from_str(text)?),
            REGEX => TopLevelGrammar::from_regex(text),
            LARK => TopLevelGrammar::from_lark(text.to_string()),
            _ => bail!("no such kind of grammar: {kind}"),
        };
        let parser = f.create_parser_from_init_ext(
            GrammarInit::Serialized(grammar),
            Logger::new(0, 0),
            InferenceCapabilities::default(),
            limits.parser_limits(),
        );
        let mut matcher = Matcher::new(parser);
        if let Some(error) = matcher.get_error() {
            bail!(error);
        }
        // A grammar that allows nothing is refused here, not in the middle of a reply. The states
        // this builds are shared by every copy.
        if !matcher.is_stopped() {
            matcher.compute_mask()?;
        }
        Ok(Grammar { start: Mutex::new(matcher), bytes: 0 })
    }

    pub fn matcher(&self) -> Matcher {
        // Deep: lexer states grow with use and are bounded, so sequences must not share them.
        self.start.lock().unwrap_or_else(|e| e.into_inner()).deep_clone()
    }
}

/// The tokens that may follow; when the grammar is at its end, the end token alone.
pub fn mask(matcher: &mut Matcher) -> Result<SimpleVob> {
    matcher.compute_mask_or_eos()
}

/// False, and nothing changed, when the token may not follow.
pub fn accept(matcher: &mut Matcher, token: TokenId) -> Result<bool> {
    if matcher.is_stopped() {
        return Ok(false);
    }
    Ok(matcher.try_consume_tokens(&[token])? == 1)
}
