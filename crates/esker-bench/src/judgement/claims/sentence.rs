//! Sentences with figures in them.
//!
//! ```text
//! sentence = { text | "{" figure "}" | "[" [ "*" glue "*" ] part { "|" part } "]" }
//! part     = [ "#" ] sentence
//! figure   = "engine" | "role" | "rival" | of ":engine" | phrase | expression [ ":" format ]
//!          | "?" condition
//! ```
//!
//! Of the parts in brackets the first counts whose figures are all there and whose conditions hold;
//! behind a glue all these count, joined by it (`and` makes a list of them, without repetitions),
//! and there must be one. A part behind `#` counts for each repetition with its figures, not the
//! medians. A figure that is missing outside of brackets is why the claim is not judged. A format
//! is one of [`format`].

use super::data::CLAIMS;
use super::scope::Scope;
use super::value::{Found, Value};
use crate::judgement::role::Role;
use crate::stats::median;
use crate::text::number::three_digits as number;
use crate::text::words::{counted, listed};

impl Scope<'_> {
    /// A sentence with its figures; the error is why one is missing.
    pub fn filled(&self, sentence: &str) -> Result<String, String> {
        let (mut filled, mut rest) = (String::new(), sentence);
        while let Some((before, at)) = rest.find(['{', '[']).map(|at| rest.split_at(at)) {
            let (inner, after) = bracketed(at).ok_or_else(|| format!("`{sentence}`: a bracket is not closed"))?;
            filled.push_str(before);
            filled.push_str(&if at.starts_with('{') { self.figure(inner)? } else { self.parts(inner)? });
            rest = after;
        }
        Ok(filled + rest)
    }

    fn parts(&self, text: &str) -> Result<String, String> {
        let glue = text.strip_prefix('*').and_then(|text| text.split_once('*'));
        let parts = split(glue.map_or(text, |(_, parts)| parts));
        let mut parts = parts.into_iter().flat_map(|part| self.each(part));
        let Some((glue, _)) = glue else { return Ok(parts.next().unwrap_or_default()) };
        let mut parts: Vec<String> = parts.collect();
        match glue {
            _ if parts.is_empty() => Err("there is no figure".into()),
            "and" => {
                parts.dedup();
                Ok(listed(&parts))
            }
            glue => Ok(parts.join(glue)),
        }
    }

    /// A part, if all of it is there, as often as it counts.
    fn each(&self, part: &str) -> Vec<String> {
        let Some(of_one) = part.strip_prefix('#') else { return self.filled(part).into_iter().collect() };
        let told = |repetition| {
            self.repetition.set(Some(repetition));
            self.filled(of_one).ok()
        };
        let all = (0..).map_while(told).collect();
        self.repetition.set(None);
        all
    }

    fn figure(&self, text: &str) -> Result<String, String> {
        let role = Role::of(self.case.engine);
        match text {
            "engine" => return Ok(self.case.engine.to_owned()),
            "role" => return Ok(role.name().to_owned()),
            "rival" => return Ok(role.rival().name().to_owned()),
            _ => {}
        }
        if let Some(phrase) = CLAIMS.phrases.get(text) {
            return self.filled(phrase);
        }
        if let Some(condition) = text.strip_prefix('?') {
            let holds = self.value(condition)?.holds();
            return if holds { Ok(String::new()) } else { Err(format!("`{condition}` does not hold")) };
        }
        if let Some(of) = text.strip_suffix(":engine") {
            return Ok(self.engine(of).unwrap_or_default().to_owned());
        }
        let (expression, as_what) = text.rsplit_once(':').unwrap_or((text, ""));
        format(self.value(expression), as_what, self.repetition.get())
    }
}

/// What is between the first bracket of a text and that which closes it, and what is behind.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        depth += i32::from("{[".contains(c)) - i32::from("}]".contains(c));
        if depth == 0 {
            return Some((&text[1..at], &text[at + 1..]));
        }
    }
    None
}

/// The parts of what is in brackets; bars in brackets of their own do not count.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == '|' && depth == 0
    })
    .collect()
}

/// `short` is for tables, `.3` has so many decimals, and `why` is the reason why there is nothing.
fn format(found: Found, as_what: &str, repetition: Option<usize>) -> Result<String, String> {
    if as_what == "why" {
        return found.map_or_else(Ok, |_| Err("it is there".into()));
    }
    let numbers = match (found?, as_what) {
        (Value::Ratio(ratio), "") => return Ok(ratio.text()),
        (Value::Ratio(ratio), "short") => return Ok(ratio.short()),
        (value, _) => value.numbers(),
    };
    let one = repetition.map_or_else(|| median(&numbers), |at| numbers.get(at).copied()).ok_or("there is no figure")?;
    let each = || numbers.iter().map(|value| number(*value)).collect::<Vec<_>>();
    match as_what {
        "" | "number" => Ok(number(one)),
        "list" => Ok(listed(&each())),
        "spaced" => Ok(each().join(" ")),
        "threads" => Ok(counted(one as u32, "thread")),
        decimals => match decimals.strip_prefix('.').and_then(|count| count.parse::<usize>().ok()) {
            Some(count) => Ok(format!("{one:.count$}")),
            None => Err(format!("`{as_what}` is no format")),
        },
    }
}
