//! The sizes of the study.

use clap::ValueEnum;

/// How large the study is, as a fraction of the published run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// 500,000 counters: to see that everything works.
    #[value(name = "1/100")]
    Hundredth,
    /// 5,000,000 counters.
    #[value(name = "1/10")]
    Tenth,
    /// 50,000,000 counters.
    #[value(name = "1")]
    Full,
}

impl Scale {
    /// What the published figures are divided by.
    pub fn divisor(self) -> u64 {
        match self {
            Scale::Hundredth => 100,
            Scale::Tenth => 10,
            Scale::Full => 1,
        }
    }

    /// Its name in variables.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Hundredth => "1/100",
            Scale::Tenth => "1/10",
            Scale::Full => "1",
        }
    }
}
