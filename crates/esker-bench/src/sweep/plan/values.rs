//! What a plan says of flags, looked up and checked.

use super::expression::{Names, evaluate, filled, plain};
use super::file::Flags;
use super::problem::Problem;
use crate::flags::table::{self, Flag, Shape, check};
use std::collections::BTreeMap;
use toml::Spanned;

/// Flags by name.
pub type Values = BTreeMap<&'static str, String>;

/// Sets flags as they are written, in place of what they were; one that is `none` is taken out.
pub fn set_flags(values: &mut Values, written: &Flags, names: &Names) -> Result<(), Problem> {
    for (name, scalar) in written {
        let flag = find_flag(name)?;
        match value(flag, &scalar.get_ref().0, names).map_err(|text| Problem::at(scalar.span(), text))? {
            Some(value) => values.insert(&flag.name, value),
            None => values.remove(flag.name.as_str()),
        };
    }
    Ok(())
}

/// The flag that is meant.
pub fn find_flag(name: &Spanned<String>) -> Result<&'static Flag, Problem> {
    let text = match (table::find(name.get_ref()), table::nearest(name.get_ref())) {
        (Some(flag), _) if flag.in_plans.is_empty() => return Ok(flag),
        (Some(flag), _) => format!("`{}` is not for a sweep to set: {}", flag.name, flag.in_plans),
        _ if name.get_ref() == "help" => "`help` is not for a sweep to set: it does nothing here".into(),
        (None, Some(near)) => format!("unknown flag `{}`; did you mean `{near}`?", name.get_ref()),
        (None, None) => format!("unknown flag `{}`; `esker bench --help` lists all", name.get_ref()),
    };
    Err(Problem::at(name.span(), text))
}

/// The value of a flag in its plain form; `None` if it is to be left out.
pub fn value(flag: &Flag, written: &str, names: &Names) -> Result<Option<String>, String> {
    let text = written.trim();
    if flag.shape == Shape::Text {
        return filled(text, names).and_then(|text| checked(flag, &text)).map(Some);
    }
    // A number that is no number by itself may be an expression; the mistake is told of what was
    // written.
    checked(flag, text).map(Some).or_else(|mistake| match evaluate(text, names) {
        Ok(number) if number.is_nan() => Ok(None),
        Ok(number) => checked(flag, &plain(number)).map(Some),
        Err(_) => Err(mistake),
    })
}

fn checked(flag: &Flag, value: &str) -> Result<String, String> {
    check(flag, value).map_err(|text| {
        text.strip_prefix("--").map_or(text.clone(), |text| format!("`{}", text.replacen(':', "`:", 1)))
    })
}
