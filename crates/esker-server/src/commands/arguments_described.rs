//! The arguments of a command, as COMMAND DOCS describes them: a tree, from one line of syntax.

use crate::protocol::Reply;

/// The types of values, by the letter that stands for them.
const TYPES: [(&str, &str); 5] =
    [("i", "integer"), ("d", "double"), ("k", "key"), ("p", "pattern"), ("t", "unix-time")];

const PURE_TOKEN: &str = "pure-token";

/// An argument, or some that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argument {
    /// What it is called.
    pub name: String,
    /// Its type, in the words of Redis.
    pub kind: &'static str,
    /// The word that stands before it, or that it is.
    pub token: Option<&'static str>,
    /// Whether it may be left out.
    pub is_optional: bool,
    /// Whether it may be given several times.
    pub is_multiple: bool,
    /// What it consists of: all of these in a block, one of them in a choice.
    pub parts: Vec<Argument>,
}

impl Argument {
    /// Those of a line of syntax.
    pub fn parse(syntax: &'static str) -> Vec<Argument> {
        let mut rest = syntax;
        sequence(&mut rest)
    }

    /// How COMMAND DOCS describes it. `key` counts the places of keys up to the last of `keys`.
    pub fn described(&self, key: &mut usize, keys: usize) -> Reply {
        let text = |name: &str, value: &str| (Reply::bulk(name), Reply::bulk(value));
        let mut fields = vec![text("name", &self.name), text("type", self.kind)];
        if self.kind == "key" && keys > 0 {
            fields.push((Reply::bulk("key_spec_index"), Reply::count((*key).min(keys - 1))));
            *key += 1;
        }
        fields.extend(self.token.map(|token| text("token", token)));
        let flags = [(self.is_optional, "optional"), (self.is_multiple, "multiple")];
        let flags: Vec<Reply> =
            flags.iter().filter(|(is_so, _)| *is_so).map(|(_, name)| Reply::Status((*name).into())).collect();
        if !flags.is_empty() {
            fields.push((Reply::bulk("flags"), Reply::Set(flags)));
        }
        if !self.parts.is_empty() {
            let parts = self.parts.iter().map(|part| part.described(key, keys)).collect();
            fields.push((Reply::bulk("arguments"), Reply::Array(parts)));
        }
        Reply::Map(fields)
    }
}

/// A line of syntax without the types of values.
pub fn shown(syntax: &str) -> String {
    let mut text = String::new();
    let mut rest = syntax;
    while let Some(place) = rest.find(':') {
        let (before, behind) = rest.split_at(place);
        text += before;
        let is_type = TYPES.iter().any(|(letter, _)| {
            let after = behind[1..].strip_prefix(letter);
            after.is_some_and(|after| !after.starts_with(|next: char| next.is_ascii_alphanumeric()))
        });
        let length = if is_type { 2 } else { 1 };
        text += if is_type { "" } else { ":" };
        rest = &behind[length..];
    }
    text + rest
}

/// What stands up to the end, or to what ends an alternative.
fn sequence(rest: &mut &'static str) -> Vec<Argument> {
    let mut found = Vec::new();
    loop {
        *rest = rest.trim_start_matches(' ');
        let mut argument = match rest.chars().next() {
            None | Some('|' | ']' | '>') => return found,
            Some(open @ ('[' | '<')) => {
                *rest = &rest[1..];
                let mut argument = group(rest);
                argument.is_optional |= open == '[';
                argument
            }
            Some(_) => word(rest),
        };
        if let Some(behind) = rest.strip_prefix("...") {
            *rest = behind;
            argument.is_multiple = true;
        }
        found.push(argument);
    }
}

/// What stands in brackets, of which the first is read already.
fn group(rest: &mut &'static str) -> Argument {
    let mut alternatives = Vec::new();
    loop {
        alternatives.push(together(sequence(rest)));
        let ends = !rest.starts_with('|');
        *rest = rest.get(1..).unwrap_or_default();
        if ends {
            break;
        }
    }
    match alternatives.len() {
        1 => alternatives.remove(0),
        _ => Argument { name: "choice".into(), kind: "oneof", parts: alternatives, ..Argument::default() },
    }
}

/// Several arguments as one. A word at their beginning is the token of what follows.
fn together(mut parts: Vec<Argument>) -> Argument {
    let has_token = parts.len() > 1 && parts[0].kind == PURE_TOKEN && !parts[0].is_optional;
    let token = if has_token { parts.remove(0).token } else { None };
    if parts.len() == 1 {
        let only = parts.remove(0);
        return Argument { token: token.or(only.token), ..only };
    }
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    Argument { name: names.join("_"), kind: "block", token, parts, ..Argument::default() }
}

fn word(rest: &mut &'static str) -> Argument {
    let end = rest.find([' ', '|', ']', '>']).unwrap_or(rest.len());
    let text = rest[..end].strip_suffix("...").unwrap_or(&rest[..end]);
    *rest = &rest[text.len()..];
    if text.chars().all(|letter| letter.is_ascii_uppercase() || letter == '-') {
        let name = text.to_ascii_lowercase();
        return Argument { name, kind: PURE_TOKEN, token: Some(text), ..Argument::default() };
    }
    let typed = text
        .rsplit_once(':')
        .and_then(|(name, letter)| TYPES.iter().find(|(known, _)| *known == letter).map(|(_, kind)| (name, *kind)));
    let (name, kind) = typed.unwrap_or((text, if text == "key" { "key" } else { "string" }));
    Argument { name: name.into(), kind, ..Argument::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, kind: &'static str) -> Argument {
        Argument { name: name.into(), kind, ..Argument::default() }
    }

    #[test]
    fn a_line_becomes_a_tree() {
        let found = Argument::parse("key [NX|XX] [LIMIT offset:i count:i] [EX seconds:i] <score:d member>...");
        assert_eq!(found.len(), 5);
        assert_eq!(found[0], value("key", "key"));
        let token = |name: &str, token| Argument { token: Some(token), ..value(name, PURE_TOKEN) };
        let parts = vec![token("nx", "NX"), token("xx", "XX")];
        assert_eq!(found[1], Argument { is_optional: true, parts, ..value("choice", "oneof") });
        let parts = vec![value("offset", "integer"), value("count", "integer")];
        let limit = Argument { token: Some("LIMIT"), is_optional: true, parts, ..value("offset_count", "block") };
        assert_eq!(found[2], limit);
        assert_eq!(found[3], Argument { token: Some("EX"), is_optional: true, ..value("seconds", "integer") });
        let parts = vec![value("score", "double"), value("member", "string")];
        assert_eq!(found[4], Argument { is_multiple: true, parts, ..value("score_member", "block") });
    }

    #[test]
    fn types_are_not_shown() {
        assert_eq!(shown("<ip:port|[ID client-id:i...]> count:i"), "<ip:port|[ID client-id...]> count");
    }
}
