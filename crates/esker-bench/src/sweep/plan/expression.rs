//! Numbers of a plan that depend on others: `max(round(buffer * scale), 16 KiB)`.
//!
//! ```text
//! or     = and { "||" and }                         1 or 0, as everything that is asked
//! and    = asked { "&&" asked }
//! asked  = sum [ ("==" | "!=" | "<=" | ">=" | "<" | ">") sum ]
//! sum    = term { ("+" | "-") term }
//! term   = factor { ("*" | "/") factor }
//! factor = ("-" | "!") factor | "(" or ")" | number [ unit ] | name [ "(" or { "," or } ")" ]
//! unit   = "KiB" | "MiB" | "GiB"
//! ```
//!
//! Functions are `min`, `max`, `round`, `floor` and `if(condition, then, else)`. A name stands for
//! its text, which is an expression itself and read when it is requested: what replaces a name
//! changes all that rests on it. `none` is no number: a flag that has it is left out.

use std::collections::BTreeMap;

/// Names and their texts.
pub type Names = BTreeMap<String, String>;

/// Names that stand for each other stand for nothing.
const DEEPEST: u32 = 20;

/// The number that a text stands for; not a number if it is `none`. The error is one line.
pub fn evaluate(text: &str, names: &Names) -> Result<f64, String> {
    at_depth(text, names, 0)
}

/// Whether a condition holds.
pub fn holds(text: &str, names: &Names) -> Result<bool, String> {
    evaluate(text, names).map(|value| value != 0.0 && !value.is_nan())
}

/// A number as flags have it.
pub fn plain(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { number.to_string() }
}

/// A text with the values of the names that it has in braces.
pub fn filled(text: &str, names: &Names) -> Result<String, String> {
    let mut pieces = text.split('{');
    let mut whole = pieces.next().unwrap_or("").to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once('}').ok_or_else(|| format!("`{text}`: a brace is not closed"))?;
        let value = names.get(name).ok_or_else(|| format!("`{text}`: there is no name `{name}`"))?;
        whole.push_str(&shown(value, names));
        whole.push_str(rest);
    }
    Ok(whole)
}

/// A number or a fraction is shown as it is written.
fn shown(value: &str, names: &Names) -> String {
    let is_plain = value.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '/');
    let number = if is_plain { None } else { evaluate(value, names).ok() };
    number.map_or_else(|| value.to_owned(), plain)
}

/// What names and functions are, and what becomes of the numbers between them.
pub trait Scope {
    /// What an expression stands for.
    type Value;

    /// A number that is written as such.
    fn number(&self, number: f64) -> Self::Value;

    /// What a sign between two makes of them, where `apply` is what it makes of numbers.
    fn combined(&self, one: Self::Value, sign: &str, apply: Apply, other: Self::Value) -> Self::Value;

    /// What a name stands for.
    fn name(&self, name: &str) -> Result<Self::Value, String>;

    /// What a function makes of its arguments, which are expressions.
    fn call(&self, function: &str, arguments: &[&str]) -> Result<Self::Value, String>;
}

/// What a text stands for in a scope.
pub fn evaluate_in<S: Scope>(text: &str, scope: &S) -> Result<S::Value, String> {
    let mut reader = Reader { rest: text.trim(), scope };
    let value = reader.whole()?;
    if reader.rest.is_empty() { Ok(value) } else { Err(format!("`{}` is not understood", reader.rest)) }
}

/// The numbers of a plan, read when they are requested.
struct Numbers<'a> {
    names: &'a Names,
    depth: u32,
}

impl Scope for Numbers<'_> {
    type Value = f64;

    fn number(&self, number: f64) -> f64 {
        number
    }

    fn combined(&self, one: f64, _: &str, apply: Apply, other: f64) -> f64 {
        apply(one, other)
    }

    fn name(&self, name: &str) -> Result<f64, String> {
        if name == "none" {
            return Ok(f64::NAN);
        }
        let text = self.names.get(name).ok_or_else(|| format!("there is no name `{name}`"))?;
        at_depth(text, self.names, self.depth + 1)
    }

    fn call(&self, function: &str, arguments: &[&str]) -> Result<f64, String> {
        let values = arguments.iter().map(|text| evaluate_in(text, self)).collect::<Result<Vec<f64>, String>>()?;
        match (function, &values[..]) {
            ("round", [value]) => Ok(value.round()),
            ("floor", [value]) => Ok(value.floor()),
            ("if", [condition, then, otherwise]) => Ok(if *condition != 0.0 { *then } else { *otherwise }),
            ("min", values) => Ok(values.iter().copied().fold(f64::INFINITY, f64::min)),
            ("max", values) => Ok(values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            (other, values) => Err(format!("there is no function `{other}` of {}", values.len())),
        }
    }
}

fn at_depth(text: &str, names: &Names, depth: u32) -> Result<f64, String> {
    if depth > DEEPEST {
        return Err(format!("`{text}` stands for itself"));
    }
    evaluate_in(text, &Numbers { names, depth }).map_err(|problem| format!("`{text}`: {problem}"))
}

/// What a sign makes of two numbers.
pub type Apply = fn(f64, f64) -> f64;

/// The signs between two numbers, with what they do: those of a row bind less than those of the
/// next. Of a sign that begins like another, the longer one comes first.
const SIGNS: [&[(&str, Apply)]; 5] = [
    &[("||", |a, b| truth((a != 0.0) | (b != 0.0)))],
    &[("&&", |a, b| truth((a != 0.0) & (b != 0.0)))],
    &[
        EQUAL,
        ("!=", |a, b| truth(a != b)),
        ("<=", |a, b| truth(a <= b)),
        (">=", |a, b| truth(a >= b)),
        ("<", |a, b| truth(a < b)),
        (">", |a, b| truth(a > b)),
    ],
    &[("+", |a, b| a + b), MINUS],
    &[("*", |a, b| a * b), ("/", |a, b| a / b)],
];

const EQUAL: (&str, Apply) = ("==", |a, b| truth(a == b));
const MINUS: (&str, Apply) = ("-", |a, b| a - b);

/// The row of which there is one sign at the most.
const ASKED: usize = 2;

struct Reader<'a, S> {
    rest: &'a str,
    scope: &'a S,
}

fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

impl<'a, S: Scope> Reader<'a, S> {
    fn take(&mut self, sign: &str) -> bool {
        let taken = self.rest.strip_prefix(sign).map(str::trim_start);
        self.rest = taken.unwrap_or(self.rest);
        taken.is_some()
    }

    fn word(&mut self, of: fn(char) -> bool) -> &'a str {
        let (word, rest) = self.rest.split_at(self.rest.find(|c| !of(c)).unwrap_or(self.rest.len()));
        self.rest = rest.trim_start();
        word
    }

    /// An operation of this or a later row of [`SIGNS`]; of no row, a factor.
    fn operation(&mut self, row: usize) -> Result<S::Value, String> {
        let Some(signs) = SIGNS.get(row) else { return self.factor() };
        let mut value = self.operation(row + 1)?;
        while let Some((sign, apply)) = signs.iter().find(|(sign, _)| self.take(sign)) {
            value = self.scope.combined(value, sign, *apply, self.operation(row + 1)?);
            if row == ASKED {
                break;
            }
        }
        Ok(value)
    }

    fn whole(&mut self) -> Result<S::Value, String> {
        self.operation(0)
    }

    fn factor(&mut self) -> Result<S::Value, String> {
        // As a sign between 0 and what follows.
        for (prefix, (sign, apply)) in [("-", MINUS), ("!", EQUAL)] {
            if self.take(prefix) {
                return Ok(self.scope.combined(self.scope.number(0.0), sign, apply, self.factor()?));
            }
        }
        if self.take("(") {
            let value = self.whole()?;
            return if self.take(")") { Ok(value) } else { Err("a parenthesis is not closed".into()) };
        }
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        match self.word(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') {
            "" => Err("a number is missing".into()),
            function if self.take("(") => {
                let (arguments, rest) = arguments(self.rest).ok_or("a parenthesis is not closed")?;
                self.rest = rest;
                self.scope.call(function, &arguments)
            }
            name => self.scope.name(name),
        }
    }

    fn number(&mut self) -> Result<S::Value, String> {
        let digits = self.word(|c| c.is_ascii_digit() || c == '.' || c == '_');
        let number: f64 = digits.replace('_', "").parse().map_err(|_| format!("{digits} is no number"))?;
        let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
        let unit = units.into_iter().find(|(unit, _)| self.take(unit));
        Ok(self.scope.number(unit.map_or(number, |(_, shift)| number * f64::from(1u32 << shift))))
    }
}

/// The texts between a parenthesis and that which closes it, and what is behind.
fn arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut found, mut from, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            ',' | ')' if depth == 0 => {
                found.push(&text[from..at]);
                from = at + 1;
                if c == ')' {
                    return Some((found, text[from..].trim_start()));
                }
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let pairs = [("scale", "1/10"), ("fill", "round(5_000_000 * scale)"), ("a", "b"), ("b", "a"), ("word", "x y")];
        pairs.map(|(name, text)| (name.to_string(), text.to_string())).into()
    }

    #[test]
    fn expressions_have_their_usual_meaning() {
        for (text, value) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3 - -1", 10.0),
            ("2 MiB / 4", 524_288.0),
            ("max(round(4 KiB * 0.1), 16 KiB)", 16_384.0),
            ("min(fill, 7, 9)", 7.0),
            ("floor(fill / 3)", 166_666.0),
            ("if(scale < 1 && !0, 2, 3)", 2.0),
            ("1 == 2 || 2 >= 2", 1.0),
        ] {
            assert_eq!(evaluate(text, &names()), Ok(value), "{text}");
        }
        assert!(evaluate("none", &names()).unwrap().is_nan() && !holds("none", &names()).unwrap());
    }

    #[test]
    fn mistakes_are_told() {
        for text in ["", "1 +", "(1", "nothing", "f(1)", "1 2", "a", "min(1"] {
            assert!(!evaluate(text, &names()).unwrap_err().contains('\n'), "{text}");
        }
    }

    #[test]
    fn names_in_braces_are_filled_in() {
        let filled = |text: &str| filled(text, &names());
        assert_eq!(filled("{fill} at {scale}: {word}").unwrap(), "500000 at 1/10: x y");
        assert!(filled("{nothing}").is_err() && filled("{fill").is_err());
    }
}
