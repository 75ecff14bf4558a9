//! The rules about prose: the width of comments, and the words of the field instead of private
//! ones.

use crate::report::Violation;
use crate::source::Source;
use crate::workspace::Workspace;

/// The columns of a whole-line comment.
const WIDTH: usize = 100;

/// The crates whose comments are under the rules.
const CRATES: [&str; 1] = ["crates/"];

/// Private words, each with the term of RocksDB or Pebble. A word with a capital matches as it is,
/// any other one in every case. Code between backticks, code fences and rows of tables are not
/// prose.
const DIALECT: [(&str, &str); 48] = [
    ("THE order", "internal key order"),
    ("put aside", "rotated, immutable"),
    ("puts aside", "rotates"),
    ("putting aside", "rotation"),
    ("memtable aside", "rotates the memtable"),
    ("memtables aside", "rotates memtables"),
    ("frozen", "immutable"),
    ("in vain", "a probe miss"),
    ("gets suffer", "high read amplification"),
    ("scans suffer", "tombstones skipped"),
    ("whoever", "name the component"),
    ("rooms", "modules"),
    ("this room", "this module"),
    ("every room", "every module"),
    ("each room", "each module"),
    ("other room", "other module"),
    ("hurry", "drain requested, manual"),
    ("asked for", "requested, manual"),
    ("settled table", "compacted table"),
    ("settled tables", "tables whose rewrite is futile"),
    ("at rest", "idle"),
    ("resting", "idle"),
    ("let go of", "release"),
    ("lets go of", "releases"),
    ("letting go of", "release of"),
    ("the view", "the read state"),
    ("a view", "a read state"),
    ("bottom of the tree", "bottom of the version"),
    ("tree of tables", "version"),
    ("stratum", "snapshot stripe"),
    ("strata", "snapshot stripes"),
    ("stock", "buffer pool"),
    ("attend to", "yield point"),
    ("attends to", "yield point"),
    ("tends to", "prefaults, prepares"),
    ("shorten chains", "collapse chains"),
    ("shorten the chain", "collapse the chain"),
    ("shortens the chain", "collapses the chain"),
    ("merge of tables", "compaction"),
    ("merges tables", "compacts tables"),
    ("merged tables", "compacted tables"),
    ("tables are merged", "tables are compacted"),
    ("be had", "available, readable"),
    ("has come to", "reached, became"),
    ("have come to", "reached, became"),
    ("of theirs", "their"),
    ("of no more use", "ended"),
    ("all there is", "name what it is"),
];

/// Private headings, each with the usual one.
const HEADINGS: [(&str, &str); 12] = [
    ("Rooms", "Modules"),
    ("Not there", "Non-goals"),
    ("Traps", "Pitfalls"),
    ("Judgement", "Claim evaluation"),
    ("What survives", "Durability guarantees"),
    ("What this costs", "Costs"),
    ("Where to go on", "Next steps"),
    ("Why it is so", "Rationale"),
    ("Why it holds", "Correctness"),
    ("What is promised", "Guarantees"),
    ("What Esker does not do", "Not supported"),
    ("What has been measured", "Measurements"),
];

/// Whole-line comments beyond the width.
pub fn wide_comments(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for source in ruled(workspace) {
        let mut prose = Prose::default();
        for (index, comment) in comments(source).enumerate() {
            let is_prose = prose.holds(comment.unwrap_or(""));
            let columns = source.text.lines().nth(index).map_or(0, |line| line.chars().count());
            if comment.is_some() && is_prose && columns > WIDTH {
                found.push(Violation::new(&source.path, index + 1, format!("a comment of {columns} columns")));
            }
        }
    }
    found
}

/// Private words in comments and in the documents, and private headings.
pub fn dialect(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for source in ruled(workspace) {
        search(&source.path, comments(source), &mut found);
    }
    for (path, text) in workspace.texts.iter().filter(|(path, _)| is_document(path)) {
        search(path, text.lines().map(Some), &mut found);
        for (index, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with('#')) {
            let title = line.trim_start_matches('#').trim();
            let private = HEADINGS.iter().find(|(private, _)| title.starts_with(private));
            found.extend(private.map(|(private, usual)| refused(path, index + 1, private, usual)));
        }
    }
    found
}

/// The files whose comments are under the rules.
fn ruled(workspace: &Workspace) -> impl Iterator<Item = &Source> {
    let sources = workspace.sources.values();
    sources.filter(|source| CRATES.iter().any(|part| source.path.starts_with(part)))
}

/// The documents of the field's register: not decisions and results, which tell of their time, nor
/// the table of contents, which has their titles.
fn is_document(path: &str) -> bool {
    let Some(name) = path.strip_suffix(".md") else { return false };
    let below = name.strip_prefix("doc/").map(|name| {
        let inner = ["format/", "book/"].iter().find_map(|part| name.strip_prefix(part));
        inner.unwrap_or(name)
    });
    below.is_some_and(|name| !name.contains('/') && name != "SUMMARY")
        || ["README", "CONTRIBUTING", "CHANGELOG"].contains(&name)
}

fn refused(path: &str, line: usize, private: &str, usual: &str) -> Violation {
    Violation::new(path, line, format!("\"{private}\" is a private word; the field says: {usual}"))
}

/// The text of each line that is a comment and nothing else.
fn comments(source: &Source) -> impl Iterator<Item = Option<&str>> {
    source.code_lines.iter().zip(&source.comment_lines).map(|(code, comment)| {
        let comment = comment.trim();
        let is_whole = code.trim().is_empty() && comment.starts_with("//");
        is_whole.then(|| comment.trim_start_matches('/').trim_start_matches('!'))
    })
}

/// Which lines are prose: neither between code fences nor rows of tables.
#[derive(Default)]
struct Prose {
    fenced: bool,
}

impl Prose {
    /// Whether the next line is prose.
    fn holds(&mut self, line: &str) -> bool {
        let line = line.trim();
        if line.starts_with("```") {
            self.fenced = !self.fenced;
            return false;
        }
        !self.fenced && !line.starts_with('|')
    }
}

/// Searches paragraphs, so that a line break hides no words. `None` is a line without prose.
fn search<'l>(path: &str, lines: impl Iterator<Item = Option<&'l str>>, found: &mut Vec<Violation>) {
    let mut prose = Prose::default();
    let mut paragraph: Vec<(usize, String)> = Vec::new();
    let mut in_code = false;
    for (index, line) in lines.enumerate() {
        let text = line.filter(|text| prose.holds(text)).unwrap_or("");
        if text.trim().is_empty() {
            search_paragraph(path, &paragraph, found);
            paragraph.clear();
            in_code = false;
            continue;
        }
        let words = without_code(text, &mut in_code);
        paragraph.extend(words.split_whitespace().map(|word| (index + 1, bare(word).to_owned())));
    }
    search_paragraph(path, &paragraph, found);
}

/// The text without what stands between backticks, which may go on in the next line.
fn without_code(text: &str, in_code: &mut bool) -> String {
    let mut kept = String::new();
    for (index, part) in text.split('`').enumerate() {
        *in_code ^= index > 0;
        kept.push_str(if *in_code { "`" } else { part });
    }
    kept
}

/// A word without the marks around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|character: char| !character.is_alphanumeric() && character != '`')
}

fn search_paragraph(path: &str, words: &[(usize, String)], found: &mut Vec<Violation>) {
    for at in 0..words.len() {
        let private = DIALECT.iter().find(|(private, _)| begins_with(&words[at..], private));
        found.extend(private.map(|(private, usual)| refused(path, words[at].0, private, usual)));
    }
}

fn begins_with(words: &[(usize, String)], phrase: &str) -> bool {
    let exactly = phrase.chars().any(char::is_uppercase);
    let mut words = words.iter();
    phrase.split(' ').all(|wanted| {
        words.next().is_some_and(|(_, word)| if exactly { word == wanted } else { word.eq_ignore_ascii_case(wanted) })
    })
}
