//! A client of the DevTools protocol over a pipe: messages are JSON, each ended by a zero byte. It
//! does what this test needs and no more, which is less code than a dependency would need reasons.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Programs that are tried, in this order.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

const FLAGS: [&str; 12] = [
    "--headless",
    "--remote-debugging-pipe",
    // Containers and users without namespaces have no sandbox; the pages shown are this project's
    // own.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-first-run",
    "--no-default-browser-check",
];

/// How long an answer may take: long, for machines that build something else beside.
const PATIENCE: Duration = Duration::from_secs(300);

/// The browser to use: `ESKER_BROWSER`, or the first of the usual ones that is there.
pub fn find() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("ESKER_BROWSER") {
        return Some(given.into());
    }
    let places = std::env::var_os("PATH")?;
    let places: Vec<PathBuf> = std::env::split_paths(&places).collect();
    PROGRAMS.iter().flat_map(|program| places.iter().map(move |place| place.join(program))).find(|path| path.is_file())
}

/// A running browser. Dropping it ends it.
pub struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    last_id: u64,
    session: Option<String>,
    /// What it reported, oldest first.
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts the browser with an empty page. What it complains about goes to `log`.
    pub fn start(program: &Path, log: &Path) -> Result<Browser, String> {
        let failed = |error: std::io::Error| format!("cannot start {}: {error}", program.display());
        let profile = tempfile::tempdir().map_err(failed)?;
        // The browser reads commands from its descriptor 3 and answers on 4: the shell makes them
        // of the child's input and output.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >&2"])
            .arg(program)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .env("HOME", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log).map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let commands = child.stdin.take().ok_or("no pipe to the browser")?;
        let answers = child.stdout.take().ok_or("no pipe from the browser")?;
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut answers = BufReader::new(answers);
            let mut message = Vec::new();
            while answers.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let parsed = serde_json::from_slice(&message);
                if parsed.is_ok_and(|value: Value| sender.send(value).is_err()) {
                    break;
                }
                message.clear();
            }
        });
        let session = None;
        let mut browser =
            Browser { child, commands, messages, last_id: 0, session, events: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", attach)?["sessionId"].as_str().map(String::from);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    /// Sends a command and waits for its answer.
    pub fn call(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.last_id += 1;
        let id = self.last_id;
        let mut command = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).map_err(|error| format!("{method}: {error}"))?;
        let mut answer = self.wait(method, |message| message["id"] == json!(id))?;
        match answer.get("error") {
            Some(error) => Err(format!("{method}: {error}")),
            None => Ok(answer["result"].take()),
        }
    }

    /// Opens a page and waits until it is loaded.
    pub fn open(&mut self, url: &str) -> Result<(), String> {
        self.events.clear();
        let answer = self.call("Page.navigate", json!({ "url": url }))?;
        if let Some(problem) = answer["errorText"].as_str() {
            return Err(format!("{url}: {problem}"));
        }
        if !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            self.wait(url, |message| message["method"] == "Page.loadEventFired")?;
        }
        Ok(())
    }

    /// The text that an expression gives in the page.
    pub fn evaluate(&mut self, expression: &str) -> Result<String, String> {
        let answer = self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }))?;
        match answer["result"]["value"].as_str() {
            Some(text) => Ok(text.to_string()),
            None => Err(format!("the page gave no text: {answer}")),
        }
    }

    /// Everything it reported since the last page was opened.
    pub fn events(&self) -> &[Value] {
        &self.events
    }

    fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value, String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left).map_err(|error| format!("{what}: no answer: {error}"))?;
            let found = wanted(&message);
            if message.get("method").is_some() {
                self.events.push(message.clone());
            }
            if found {
                return Ok(message);
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        let _ = self.call("Browser.close", json!({}));
        for _ in 0..50 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bytes of a text in base 64.
pub fn base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for character in text.bytes() {
        let value = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
