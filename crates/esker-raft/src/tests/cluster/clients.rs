//! The clients of a simulated cluster, and what they have seen of its objects.

use super::super::history::payload;
use super::super::world::{pause, put, random, spawn};
use super::history::{History, Overlap};
use super::network::Reachable;
use super::objects::{Found, KINDS, LEASE, MEMBERS, Object, Use};
use super::replicas::{Machine, Replicas};
use crate::{Command, KeyValueAnswer, Operation, Reply, Request};
use openraft::ReadPolicy;
use parking_lot::Mutex;
use rand::RngExt;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What clients rely on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Semantics {
    /// What was not answered is repeated in a session; a read asks whether the leader leads.
    Sessions,
    /// What was not answered is sent as another request.
    BlindRetries,
    /// A read takes the word of a node that believes to lead.
    LocalReads,
    /// A write that returns nothing is done once a node that believes to lead has taken it, before
    /// a majority has it.
    EarlyAnswers,
}

const CLIENTS: u64 = 6;
/// After how many uses an object is left for a new one of its kind: so each history is short.
const USES: usize = 24;
/// How often a use is repeated before the cluster counts as stuck.
const ATTEMPTS: usize = 2_000;
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_millis(700);

/// What clients have seen of the objects, by their numbers.
struct Histories {
    all: BTreeMap<usize, History>,
    /// The object of each kind that is in use.
    newest: [usize; KINDS],
}

impl Histories {
    fn new() -> Histories {
        Histories { all: BTreeMap::new(), newest: std::array::from_fn(|kind| kind) }
    }

    /// Begins a use of the object of that kind that is in use. Its number, and that of the use.
    fn begin(&mut self, kind: usize, what: Use) -> (usize, usize) {
        let newest = &mut self.newest[kind];
        if self.all.get(newest).is_some_and(|history| history.uses() >= USES) {
            *newest += KINDS;
        }
        let object = *newest;
        (object, self.history(object).begin(what))
    }

    fn history(&mut self, object: usize) -> &mut History {
        self.all.entry(object).or_insert_with(|| History::new(Object::new(object)))
    }
}

/// What all clients are called for.
#[derive(Clone, Copy)]
struct Call {
    /// To use an object of that kind.
    kind: usize,
    /// To end.
    is_last: bool,
}

/// Calls clients.
#[derive(Clone)]
pub struct Caller(Arc<watch::Sender<Call>>);

impl Caller {
    /// Has the clients that have nothing under way use one object at about the same time.
    pub fn call(&self, kind: usize) {
        self.0.send_replace(Call { kind, is_last: false });
    }
}

/// What clients have done.
pub struct Done {
    pub overlap: Overlap,
    pub objects: u64,
    pub retries: u64,
    /// The steps that the checks of all histories took.
    pub steps: u64,
}

/// The clients at work.
pub struct Clients {
    histories: Arc<Mutex<Histories>>,
    caller: Caller,
    tasks: Vec<JoinHandle<Result<Client, String>>>,
}

impl Clients {
    pub fn start(replicas: &Replicas, seed: u64, semantics: Semantics) -> Clients {
        let histories = Arc::new(Mutex::new(Histories::new()));
        let caller = Caller(Arc::new(watch::Sender::new(Call { kind: 0, is_last: false })));
        let task = |number: u64| {
            let (random, replicas, histories) = (random(seed ^ (number << 32)), replicas.clone(), histories.clone());
            let client = Client { number, replicas, histories, random, semantics, session: None, uses: 0, retries: 0 };
            spawn(client.work(caller.0.subscribe()))
        };
        let tasks = (1..=CLIENTS).map(task).collect();
        spawn(call_now_and_then(caller.clone(), random(seed ^ 0xca11)));
        Clients { histories, caller, tasks }
    }

    pub fn caller(&self) -> Caller {
        self.caller.clone()
    }

    /// Ends the clients, reads all objects once more, and checks what was seen.
    pub async fn finish(self) -> Result<Done, String> {
        self.caller.0.send_modify(|call| call.is_last = true);
        let (mut retries, mut last) = (0, None);
        for task in self.tasks {
            let client = task.await.map_err(|error| error.to_string())??;
            retries += client.retries as u64;
            last = Some(client);
        }
        let objects: Vec<usize> = self.histories.lock().all.keys().copied().collect();
        if let Some(mut client) = last {
            for object in &objects {
                client.read_and_note(*object).await?;
            }
        }
        // Requests that nobody waits for have come by then.
        pause(Duration::from_secs(2)).await;
        let (histories, mut overlap, mut steps) = (self.histories.lock(), Overlap::default(), 0);
        for history in histories.all.values() {
            steps += history.check()? as u64;
            let one = history.overlap();
            overlap.uses += one.uses;
            overlap.ended += one.ended;
            overlap.within_another += one.within_another;
        }
        Ok(Done { overlap, objects: objects.len() as u64, retries, steps })
    }
}

/// Calls the clients until the last call.
async fn call_now_and_then(caller: Caller, mut random: StdRng) {
    while !caller.0.borrow().is_last {
        pause(Duration::from_millis(random.random_range(0..1_500))).await;
        let kind = random.random_range(0..KINDS);
        caller.0.send_modify(|call| call.kind = kind);
    }
}

struct Client {
    number: u64,
    replicas: Replicas,
    histories: Arc<Mutex<Histories>>,
    random: StdRng,
    semantics: Semantics,
    session: Option<u64>,
    uses: u64,
    retries: usize,
}

impl Client {
    async fn work(mut self, mut calls: watch::Receiver<Call>) -> Result<Client, String> {
        self.begin_session().await?;
        loop {
            let thought = Duration::from_millis(self.random.random_range(0..2_500));
            if timeout(thought, calls.changed()).await.is_ok() {
                pause(Duration::from_millis(self.random.random_range(0..50))).await;
            }
            let call = *calls.borrow_and_update();
            if call.is_last {
                return Ok(self);
            }
            self.use_one(call.kind).await?;
        }
    }

    async fn begin_session(&mut self) -> Result<(), String> {
        if self.semantics == Semantics::BlindRetries {
            return Ok(());
        }
        match self.request(Request::OpenSession, ATTEMPTS).await? {
            Some(Reply::SessionOpened(session)) => self.session = Some(session),
            other => return Err(format!("a session opens with {other:?}")),
        }
        Ok(())
    }

    async fn use_one(&mut self, kind: usize) -> Result<(), String> {
        self.uses += 1;
        let what = self.draw(kind);
        let (object, number) = self.histories.lock().begin(kind, what.clone());
        let found = if what == Use::Read && self.random.random_range(0..3) > 0 {
            Some(self.read(object).await?)
        } else if self.semantics == Semantics::EarlyAnswers && matches!(what, Use::Write(_) | Use::Clear) {
            self.write_early(operations(object, &what)).await?;
            Some(Found::Nothing)
        } else {
            // When the time of a use is not known, nobody can say when its lease ends.
            let gives_up = kind != LEASE && self.random.random_range(0..8) == 0;
            let attempts = if gives_up { self.random.random_range(1..8) } else { ATTEMPTS };
            let values = self.write(operations(object, &what), attempts).await?;
            values.map(|values| found(object, &what, values.iter().map(Option::as_deref).collect())).transpose()?
        };
        match found {
            Some(found) => self.histories.lock().history(object).end(number, found),
            // What comes late then has nothing to do with what the client does next.
            None => self.begin_session().await?,
        }
        Ok(())
    }

    async fn read_and_note(&mut self, object: usize) -> Result<(), String> {
        let number = self.histories.lock().history(object).begin(Use::Read);
        let found = self.read(object).await?;
        self.histories.lock().history(object).end(number, found);
        Ok(())
    }

    /// What to do with an object of that kind.
    fn draw(&mut self, kind: usize) -> Use {
        let value = self.number * 1_000_000 + self.uses;
        let member = self.random.random_range(0..MEMBERS);
        let ttl_ms = self.random.random_range(1..8_000);
        match (kind, self.random.random_range(0..8)) {
            (_, 0..3) => Use::Read,
            (0, _) => Use::Write(value),
            (1, _) => Use::Add(self.random.random_range(1..100)),
            (2, 3) => Use::Clear,
            (2, 4) => Use::Remove(member),
            (2, _) => Use::Insert(member),
            (_, 3) => Use::Renew { ttl_ms },
            _ => Use::Grant { value, ttl_ms },
        }
    }

    fn request_of(&self, operations: Vec<Operation>) -> Request {
        let payload = payload(operations);
        match self.session {
            Some(session) => Request::ApplyOnce { session, number: self.uses, payload },
            None => Request::Apply(payload),
        }
    }

    /// How long a message from or to a client takes.
    fn delay(&mut self) -> Duration {
        let most_ms = if self.random.random_range(0..8) == 0 { 600 } else { 80 };
        Duration::from_millis(self.random.random_range(0..most_ms))
    }

    /// Asks a node, and waits for the answer as long as clients do. The request may come later, and
    /// is not called back.
    async fn ask<T: Send + 'static, F: Future<Output = Option<T>> + Send + 'static>(
        &mut self,
        ask: impl FnOnce(Replicas, u64, Reachable) -> F + Send + 'static,
    ) -> Option<T> {
        let (node, to, back) = (self.node().await, self.delay(), self.delay());
        let replicas = self.replicas.clone();
        let exchange = spawn(async move {
            pause(to).await;
            let reachable = replicas.network.reach(node)?;
            let answer = ask(replicas, node, reachable).await;
            pause(back).await;
            answer
        });
        let answer = timeout(PATIENCE, exchange).await.ok().and_then(Result::ok).flatten();
        if answer.is_none() {
            self.retries += 1;
            pause(Duration::from_millis(50)).await;
        }
        answer
    }

    /// A fault: gives a write to a node that believes to lead, and asks for no answer.
    async fn write_early(&mut self, operations: Vec<Operation>) -> Result<(), String> {
        let request = self.request_of(operations);
        for _ in 0..ATTEMPTS {
            let request = request.clone();
            let given = self.ask(|replicas, node, reachable| async move {
                let leads = reachable.raft.current_leader().await == Some(node);
                let command = Command { time_ms: replicas.time_ms(node), request };
                (leads && reachable.raft.client_write_ff(command, None).await.is_ok()).then_some(())
            });
            if given.await.is_some() {
                return Ok(());
            }
        }
        Err(format!("client {} finds no leader for {request:?}", self.number))
    }

    /// Writes until it is answered, or up to so many times.
    async fn write(
        &mut self,
        operations: Vec<Operation>,
        attempts: usize,
    ) -> Result<Option<Vec<Option<Vec<u8>>>>, String> {
        match self.request(self.request_of(operations), attempts).await? {
            None => Ok(None),
            Some(Reply::Applied(bytes)) => {
                match KeyValueAnswer::from_bytes(&bytes).map_err(|error| error.to_string())? {
                    KeyValueAnswer::Done(values) => Ok(Some(values)),
                    other => Err(format!("a write is answered with {other:?}")),
                }
            }
            Some(other) => Err(format!("a write is answered with {other:?}")),
        }
    }

    /// A node to ask: mostly the one that some node believes to be the leader. So clients differ
    /// in whom they ask while the nodes differ.
    async fn node(&mut self) -> u64 {
        let nodes = self.replicas.nodes();
        let some = nodes[self.random.random_range(0..nodes.len())];
        let Some(reachable) = self.replicas.network.reach(some) else { return some };
        match reachable.raft.current_leader().await {
            Some(leader) if self.random.random_range(0..4) > 0 => leader,
            _ => some,
        }
    }

    /// The answer; nothing if there was none after so many attempts, which is an error after all
    /// that there can be.
    async fn request(&mut self, request: Request, attempts: usize) -> Result<Option<Reply>, String> {
        for _ in 0..attempts {
            let request = request.clone();
            let answer = self.ask(|replicas, node, reachable| async move {
                let command = Command { time_ms: replicas.time_ms(node), request };
                reachable.raft.client_write(command).await.ok().map(|answer| answer.data)
            });
            if let Some(answer) = answer.await {
                return Ok(Some(answer));
            }
        }
        if attempts < ATTEMPTS {
            return Ok(None);
        }
        Err(format!("client {} gets no answer to {request:?}", self.number))
    }

    /// Reads what the leader has, when it is sure to be the leader.
    async fn read(&mut self, object: usize) -> Result<Found, String> {
        let is_local = self.semantics == Semantics::LocalReads;
        for _ in 0..ATTEMPTS {
            let found = self.ask(move |_, node, reachable| async move {
                let is_sure = if is_local {
                    reachable.raft.current_leader().await == Some(node)
                } else {
                    reachable.raft.ensure_linearizable(ReadPolicy::ReadIndex).await.is_ok()
                };
                if is_sure { read_here(&reachable.machine, object).transpose() } else { None }
            });
            if let Some(found) = found.await {
                return found;
            }
        }
        Err(format!("client {} cannot read", self.number))
    }
}

/// Where the parts of an object are.
fn places(object: usize) -> Vec<(&'static str, String)> {
    match object % KINDS {
        0 => vec![("registers", object.to_string())],
        1 => vec![("sums", object.to_string())],
        2 => (0..MEMBERS).map(|member| ("members", member_key(object, member))).collect(),
        _ => vec![("times", "now".into()), ("leases", object.to_string())],
    }
}

fn member_key(object: usize, member: u8) -> String {
    format!("{object}.{member}")
}

/// The use as operations of a command.
fn operations(object: usize, what: &Use) -> Vec<Operation> {
    let get = |(keyspace, key): (&str, String)| Operation::Get { keyspace: keyspace.into(), key: key.into() };
    let (keyspace, key) = ("members".to_string(), |member: &u8| member_key(object, *member).into_bytes());
    let name = object.to_string();
    let gets = places(object).into_iter().map(get);
    match what {
        Use::Read => gets.collect(),
        Use::Write(value) => vec![put("registers", &name, value.to_le_bytes(), None)],
        Use::Add(amount) => {
            let operand = amount.to_le_bytes().to_vec();
            let merge = Operation::Merge { keyspace: "sums".into(), key: name.into(), operand };
            std::iter::once(merge).chain(gets).collect()
        }
        Use::Insert(member) => vec![
            Operation::Get { keyspace: keyspace.clone(), key: key(member) },
            Operation::Put { keyspace, key: key(member), value: vec![1], ttl_ms: None },
        ],
        Use::Remove(member) => vec![
            Operation::Get { keyspace: keyspace.clone(), key: key(member) },
            Operation::Delete { keyspace, key: key(member) },
        ],
        Use::Clear => {
            // The character behind the point ends the keys of this object.
            let (start, end) = (format!("{object}.").into(), Some(format!("{object}/").into()));
            vec![Operation::DeleteRange { keyspace, start, end }]
        }
        Use::Grant { value, ttl_ms } => {
            gets.chain([put("leases", &name, value.to_le_bytes(), Some(*ttl_ms))]).collect()
        }
        Use::Renew { ttl_ms } => {
            let (keyspace, key) = ("leases".to_string(), name.into());
            gets.chain([Operation::Expire { keyspace, key, ttl_ms: Some(*ttl_ms) }]).collect()
        }
    }
}

/// What the values that a command got say.
fn found(object: usize, what: &Use, values: Vec<Option<&[u8]>>) -> Result<Found, String> {
    let first = values.first().copied().flatten();
    Ok(match (object % KINDS, what) {
        (_, Use::Write(_) | Use::Clear) => Found::Nothing,
        (_, Use::Insert(_) | Use::Remove(_)) => Found::Was(first.is_some()),
        (2, _) => Found::Members((0..MEMBERS).filter(|member| values[usize::from(*member)].is_some()).collect()),
        (3, _) => Found::Lease {
            time_ms: first.map_or(Ok(0), number)?,
            value: values.get(1).copied().flatten().map(number).transpose()?,
        },
        _ => Found::Number(first.map_or(Ok(0), number)?),
    })
}

/// What a replica has; nothing if its database fails.
fn read_here(machine: &Machine, object: usize) -> Result<Option<Found>, String> {
    let database = machine.database();
    let values = places(object).into_iter().map(|(keyspace, key)| database.keyspaces()[keyspace].get(key));
    let Ok(values) = values.collect::<Result<Vec<_>, _>>() else { return Ok(None) };
    let mut found = found(object, &Use::Read, values.iter().map(Option::as_deref).collect())?;
    if let Found::Lease { time_ms, .. } = &mut found {
        // The time of the state may be later than that of the newest payload.
        *time_ms = database.time_ms();
    }
    Ok(Some(found))
}

fn number(bytes: &[u8]) -> Result<u64, String> {
    bytes.try_into().map(u64::from_le_bytes).map_err(|_| format!("{bytes:?} is no number"))
}
