//! The rule about filters of tests in the Makefile: one that names a module that was moved would
//! run nothing, and succeed.

use crate::report::Violation;
use crate::workspace::Workspace;

const MAKEFILE: &str = "Makefile";
/// Where the filtered tests are.
const LIBRARY: &str = "crates/esker/src/lib.rs";

/// Every filter of the engine's own tests that no module of tests has in its name.
pub fn idle(workspace: &Workspace) -> Vec<Violation> {
    let own = workspace.modules.iter().filter(|module| module.test && module.root == LIBRARY);
    let names: Vec<String> = own.map(|module| format!("{}::", module.path.join("::"))).collect();
    let is_idle = |filter: &&str| !names.iter().any(|name| name.contains(filter));
    let of_line = |(line, filters): (usize, &str)| -> Vec<Violation> {
        let idle = filters.split_whitespace().filter(is_idle);
        idle.map(|filter| Violation::new(MAKEFILE, line, format!("no module of tests is called {filter}"))).collect()
    };
    lists(workspace).into_iter().flat_map(of_line).collect()
}

/// How many filters there are.
pub fn count(workspace: &Workspace) -> usize {
    lists(workspace).iter().map(|(_, filters)| filters.split_whitespace().count()).sum()
}

/// The variables of filters, each with its line.
fn lists(workspace: &Workspace) -> Vec<(usize, &str)> {
    let lines = workspace.texts.get(MAKEFILE).into_iter().flat_map(|text| text.lines().zip(1..));
    lines
        .filter_map(|(line, number)| {
            let (name, filters) = line.split_once(" ?= ")?;
            name.ends_with("_TESTS").then_some((number, filters))
        })
        .collect()
}
