//! The frame that every report has: head, style, heading, and the rule that forbids every request.

use super::engine_style::plot_rules;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// Forbids every request, so that the page shows the same everywhere and tells nobody that it was read.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// What differs from report to report.
pub struct Frame<'a> {
    /// The title.
    pub title: &'a str,
    /// When it was measured, RFC 3339; empty if that is not known.
    pub date: &'a str,
    /// The processor; empty if that is not known.
    pub cpu: &'a str,
    /// Rules that join the common style sheet. It must not hold text from a record.
    pub style: &'static str,
    /// The command that writes the page.
    pub made_by: &'a str,
}

impl Frame<'_> {
    /// The whole document around `contents`, the list of links, and `main`.
    pub fn document(&self, contents: &Markup, main: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content=(self.made_by);
                    link rel="icon" href="data:,";
                    title { (self.title) }
                    style { (PreEscaped(STYLE)) (PreEscaped(plot_rules())) (PreEscaped(self.style)) }
                }
                body {
                    a.skip href="#content" { "Skip to the content" }
                    header {
                        h1 { (self.title) }
                        p.date {
                            @if self.date.is_empty() {
                                "Date not recorded"
                            } @else {
                                time datetime=(self.date) { (readable_date(self.date)) }
                            }
                            @if !self.cpu.is_empty() { " on " (self.cpu) }
                        }
                        (contents)
                    }
                    main id="content" { (main) }
                    footer { p { "Written by " code { (self.made_by) } ". This page is complete in itself and loads nothing." } }
                }
            }
        }
    }
}

/// `2030-01-02T03:04:05Z` as `2030-01-02 03:04:05 UTC`; anything else as it is.
pub fn readable_date(date: &str) -> String {
    match date.strip_suffix('Z').and_then(|rest| rest.split_once('T')) {
        Some((day, time)) => format!("{day} {time} UTC"),
        None => date.to_string(),
    }
}
