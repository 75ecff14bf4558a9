//! A strict reader of the little HTML that reports use: every element is closed, every attribute is
//! quoted. And what must hold for every page made of it.

/// Elements that have no end tag.
const VOID: [&str; 5] = ["meta", "link", "br", "hr", "wbr"];

/// A start tag.
#[derive(Debug)]
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    /// The names of the elements around it, outermost first.
    pub path: Vec<String>,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn inside(&self, name: &str) -> bool {
        self.path.iter().any(|outer| outer == name)
    }
}

/// All elements of a page, or what is wrong with it.
pub fn elements(page: &str) -> Result<Vec<Element>, String> {
    let mut rest = page.strip_prefix("<!DOCTYPE html>").ok_or("no doctype")?;
    let mut open: Vec<String> = Vec::new();
    let mut found = Vec::new();
    while let Some(at) = rest.find('<') {
        if rest[..at].contains('>') && open.last().is_none_or(|name| name != "style") {
            return Err(format!("stray > in {:?}", &rest[..at]));
        }
        rest = &rest[at + 1..];
        if let Some(end_tag) = rest.strip_prefix('/') {
            let end = end_tag.find('>').ok_or("an end tag without an end")?;
            match open.pop() {
                Some(name) if name == end_tag[..end] => {}
                other => return Err(format!("</{}> closes {other:?}", &end_tag[..end])),
            }
            rest = &end_tag[end + 1..];
            continue;
        }
        let (element, empty, after) = start_tag(rest, &open)?;
        rest = after;
        if !empty && !VOID.contains(&element.name.as_str()) {
            open.push(element.name.clone());
        }
        found.push(element);
    }
    if open.is_empty() { Ok(found) } else { Err(format!("never closed: {open:?}")) }
}

/// Reads `name attribute="value" ...>` and gives the element, whether it ended with `/>`, and what
/// follows.
fn start_tag<'a>(tag: &'a str, open: &[String]) -> Result<(Element, bool, &'a str), String> {
    let name_end = tag.find(|c: char| !c.is_ascii_alphanumeric()).ok_or("a tag without an end")?;
    let mut element =
        Element { name: tag[..name_end].to_ascii_lowercase(), attributes: Vec::new(), path: open.to_vec() };
    let mut rest = tag[name_end..].trim_start();
    loop {
        if let Some(after) = rest.strip_prefix("/>") {
            return Ok((element, true, after));
        }
        if let Some(after) = rest.strip_prefix('>') {
            return Ok((element, false, after));
        }
        let (name, after) = rest.split_once('=').ok_or("an attribute without a value")?;
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err(format!("attribute {name:?} of {}", element.name));
        }
        let after = after.strip_prefix('"').ok_or_else(|| format!("attribute {name} is not quoted"))?;
        if element.attribute(name).is_some() {
            return Err(format!("attribute {name} of {} occurs twice", element.name));
        }
        let (value, after) = after.split_once('"').ok_or("a quote without an end")?;
        element.attributes.push((name.to_string(), value.to_string()));
        rest = after.trim_start();
    }
}

/// The text of a page without its tags.
pub fn text(page: &str) -> String {
    let body = page.split_once("<body>").map_or(page, |(_, body)| body);
    let mut shown = String::new();
    for part in body.split('<') {
        shown.push_str(part.split_once('>').map_or(part, |(_, text)| text));
    }
    shown.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// What must hold for every report.
pub fn check(page: &str) -> Vec<Element> {
    let elements = elements(page).unwrap_or_else(|error| panic!("not well formed: {error}"));
    let mut ids: Vec<&str> = elements.iter().filter_map(|element| element.attribute("id")).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an id occurs twice");
    for element in &elements {
        let loads = ["src", "srcset", "data", "action", "poster", "background"];
        assert!(loads.iter().all(|name| element.attribute(name).is_none()), "{element:?} loads something");
        if let Some(target) = element.attribute("href") {
            assert!(target == "data:," || target.strip_prefix('#').is_some_and(|id| ids.contains(&id)), "{target}");
        }
        for name in ["aria-labelledby", "aria-describedby"] {
            for id in element.attribute(name).unwrap_or("").split_whitespace() {
                assert!(ids.contains(&id), "{name} names {id}, which is not there");
            }
        }
        assert!(!element.attributes.iter().any(|(name, _)| name.starts_with("on")), "{element:?} holds a script");
        let forbidden = ["script", "iframe", "object", "embed", "img", "base", "form", "use", "image", "foreignobject"];
        assert!(!forbidden.contains(&element.name.as_str()), "{element:?}");
        if element.name == "table" {
            assert!(element.inside("div"), "a table without a container to scroll in");
        }
        if element.name == "svg" {
            assert!(element.attribute("aria-hidden").is_some() || element.attribute("role") == Some("img"));
        }
        if element.name == "th" {
            assert!(element.attribute("scope").is_some(), "a heading without a scope");
        }
    }
    assert!(!page.contains("url(") && !page.contains("@import"));
    for name in ["header", "nav", "main", "footer", "h1"] {
        assert_eq!(elements.iter().filter(|element| element.name == name).count(), 1, "{name}");
    }
    let count = |name: &str| elements.iter().filter(|element| element.name == name).count();
    assert_eq!(count("table"), count("caption"));
    elements
}
