//! The file of the claims.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The file.
#[derive(Deserialize)]
pub struct Claims {
    /// Parts of sentences, by name.
    pub phrases: BTreeMap<String, String>,
    /// Figures of several claims.
    pub figures: BTreeMap<String, String>,
    pub claim: BTreeMap<String, Claim>,
}

#[derive(Deserialize)]
pub struct Claim {
    #[serde(default)]
    pub rows: BTreeMap<String, String>,
    #[serde(default)]
    pub figures: BTreeMap<String, String>,
    #[serde(default)]
    pub sizes: Vec<Vec<String>>,
    /// Why nothing is known where rows share no size; empty: what is said of a row that is missing.
    #[serde(default)]
    pub differ: String,
    /// The row without compression, of a claim about leaving it out, which says nothing of engines
    /// that do not compress.
    pub without_compression: Option<String>,
    #[serde(default)]
    pub cases: Vec<Said>,
    #[serde(flatten)]
    pub said: Said,
}

#[derive(Deserialize)]
pub struct Said {
    #[serde(rename = "if")]
    pub condition: Option<String>,
    pub direction: Option<String>,
    pub magnitude: Option<String>,
    pub value: Option<String>,
    pub why: Option<String>,
}

pub static CLAIMS: LazyLock<Claims> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../data/claims.toml")).expect("the claims of this crate are read by its tests")
});
