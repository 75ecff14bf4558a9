//! The clients of a simulated cluster, and what they have seen of its objects.

use super::super::history::payload;
use super::super::world::{pause, put, random, spawn};
use super::objects::{Found, MEMBERS, OBJECTS, Object, Use};
use super::replicas::{Machine, Replicas};
use crate::{Command, KeyValueAnswer, Operation, Reply, Request};
use openraft::ReadPolicy;
use parking_lot::Mutex;
use rand::RngExt;
use rand::rngs::StdRng;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester};
use std::sync::Arc;
use std::time::Duration;
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

/// What clients have seen of the objects.
struct Histories {
    testers: [LinearizabilityTester<u64, Object>; OBJECTS],
    /// How many uses of each are under way.
    under_way: [usize; OBJECTS],
    /// How many uses began while another one of their object was under way.
    overlaps: usize,
}

impl Histories {
    fn begin(&mut self, client: u64, object: usize, what: Use) -> Result<(), String> {
        self.overlaps += usize::from(self.under_way[object] > 0);
        self.under_way[object] += 1;
        self.testers[object].on_invoke(client, what).map(drop)
    }

    fn end(&mut self, client: u64, object: usize, found: Found) -> Result<(), String> {
        self.under_way[object] -= 1;
        self.testers[object].on_return(client, found).map(drop)
    }
}

/// What clients have done.
pub struct Done {
    pub uses: u64,
    /// Those that began while another one of their object was under way.
    pub overlaps: u64,
    pub retries: u64,
}

/// The clients at work.
pub struct Clients {
    histories: Arc<Mutex<Histories>>,
    tasks: Vec<JoinHandle<Result<usize, String>>>,
}

const CLIENTS: u64 = 6;
/// How many operations a client makes.
const OPERATIONS: u64 = 14;
/// How often one is repeated before the cluster counts as stuck.
const ATTEMPTS: usize = 2_000;

impl Clients {
    pub fn start(replicas: &Replicas, seed: u64, semantics: Semantics) -> Clients {
        let testers = Object::all().map(LinearizabilityTester::new);
        let histories = Arc::new(Mutex::new(Histories { testers, under_way: [0; OBJECTS], overlaps: 0 }));
        let task = |number: u64| {
            let random = random(seed ^ (number << 32));
            let client = Client { number, replicas: replicas.clone(), random, semantics, session: None, retries: 0 };
            spawn(client.work(Arc::clone(&histories)))
        };
        let tasks = (1..=CLIENTS).map(task).collect();
        Clients { histories, tasks }
    }

    /// Waits for the clients, and checks what they have seen.
    pub async fn finish(self) -> Result<Done, String> {
        let mut retries = 0;
        for task in self.tasks {
            retries += task.await.map_err(|error| error.to_string())??;
        }
        let histories = self.histories.lock();
        for history in &histories.testers {
            if !history.is_consistent() {
                return Err(format!("not linearizable: {history:?}"));
            }
        }
        Ok(Done { uses: CLIENTS * OPERATIONS, overlaps: histories.overlaps as u64, retries: retries as u64 })
    }
}

struct Client {
    number: u64,
    replicas: Replicas,
    random: StdRng,
    semantics: Semantics,
    session: Option<u64>,
    retries: usize,
}

impl Client {
    async fn work(mut self, histories: Arc<Mutex<Histories>>) -> Result<usize, String> {
        if self.semantics != Semantics::BlindRetries {
            match self.request(Request::OpenSession).await? {
                Reply::SessionOpened(session) => self.session = Some(session),
                other => return Err(format!("a session opens with {other:?}")),
            }
        }
        for operation in 0..OPERATIONS {
            let thought = Duration::from_millis(self.random.random_range(0..3_000));
            pause(thought).await;
            let object = self.random.random_range(0..OBJECTS);
            let what = self.draw(object, operation);
            histories.lock().begin(self.number, object, what.clone())?;
            let found = if what == Use::Read && self.random.random_range(0..3) > 0 {
                self.read(object).await?
            } else if self.semantics == Semantics::EarlyAnswers && matches!(what, Use::Write(_) | Use::Clear) {
                self.write_early(operation, operations(object, &what)).await?;
                Found::Nothing
            } else {
                let values = self.write(operation, operations(object, &what)).await?;
                found(object, &what, values.iter().map(Option::as_deref).collect())?
            };
            histories.lock().end(self.number, object, found)?;
        }
        Ok(self.retries)
    }

    /// What to do with that object.
    fn draw(&mut self, object: usize, operation: u64) -> Use {
        let value = self.number * 1_000 + operation + 1;
        let member = self.random.random_range(0..MEMBERS);
        let ttl_ms = self.random.random_range(1..8_000);
        match (object, self.random.random_range(0..8)) {
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

    fn request_of(&self, operation: u64, operations: Vec<Operation>) -> Request {
        let payload = payload(operations);
        match self.session {
            Some(session) => Request::ApplyOnce { session, number: operation + 1, payload },
            None => Request::Apply(payload),
        }
    }

    /// A fault: gives a write to a node that believes to lead, and asks for no answer.
    async fn write_early(&mut self, operation: u64, operations: Vec<Operation>) -> Result<(), String> {
        let request = self.request_of(operation, operations);
        for _ in 0..ATTEMPTS {
            let node = self.node().await;
            if let Some(reachable) = self.replicas.network.reach(node)
                && reachable.raft.current_leader().await == Some(node)
            {
                let command = Command { time_ms: self.replicas.time_ms(node), request: request.clone() };
                if reachable.raft.client_write_ff(command, None).await.is_ok() {
                    return Ok(());
                }
            }
            pause(Duration::from_millis(50)).await;
        }
        Err(format!("client {} finds no leader for {request:?}", self.number))
    }

    /// Writes until it is answered.
    async fn write(&mut self, operation: u64, operations: Vec<Operation>) -> Result<Vec<Option<Vec<u8>>>, String> {
        match self.request(self.request_of(operation, operations)).await? {
            Reply::Applied(bytes) => match KeyValueAnswer::from_bytes(&bytes).map_err(|error| error.to_string())? {
                KeyValueAnswer::Done(values) => Ok(values),
                other => Err(format!("a write is answered with {other:?}")),
            },
            other => Err(format!("a write is answered with {other:?}")),
        }
    }

    /// A node to ask: mostly the one that another believes to be the leader.
    async fn node(&mut self) -> u64 {
        let nodes = self.replicas.nodes();
        let guess = nodes[self.random.random_range(0..nodes.len())];
        match self.replicas.leader().await {
            Some(leader) if self.random.random_range(0..4) > 0 => leader,
            _ => guess,
        }
    }

    async fn request(&mut self, request: Request) -> Result<Reply, String> {
        for _ in 0..ATTEMPTS {
            let node = self.node().await;
            if let Some(reachable) = self.replicas.network.reach(node) {
                let command = Command { time_ms: self.replicas.time_ms(node), request: request.clone() };
                let answer = timeout(Duration::from_millis(700), reachable.raft.client_write(command)).await;
                if let Ok(Ok(answer)) = answer {
                    return Ok(answer.data);
                }
            }
            self.retries += 1;
            pause(Duration::from_millis(50)).await;
        }
        Err(format!("client {} gets no answer to {request:?}", self.number))
    }

    /// Reads what the leader has, when it is sure to be the leader.
    async fn read(&mut self, object: usize) -> Result<Found, String> {
        for _ in 0..ATTEMPTS {
            let node = self.node().await;
            if let Some(reachable) = self.replicas.network.reach(node) {
                let is_sure = if self.semantics == Semantics::LocalReads {
                    reachable.raft.current_leader().await == Some(node)
                } else {
                    let sure = reachable.raft.ensure_linearizable(ReadPolicy::ReadIndex);
                    matches!(timeout(Duration::from_millis(700), sure).await, Ok(Ok(_)))
                };
                if is_sure && let Some(found) = read_here(&reachable.machine, object)? {
                    return Ok(found);
                }
            }
            self.retries += 1;
            pause(Duration::from_millis(50)).await;
        }
        Err(format!("client {} cannot read", self.number))
    }
}

/// Where the parts of an object are.
fn places(object: usize) -> Vec<(&'static str, String)> {
    match object {
        0 => vec![("registers", "register".into())],
        1 => vec![("sums", "sum".into())],
        2 => (0..MEMBERS).map(|member| ("members", member.to_string())).collect(),
        _ => vec![("times", "now".into()), ("leases", "lease".into())],
    }
}

/// The use as operations of a command.
fn operations(object: usize, what: &Use) -> Vec<Operation> {
    let get = |(keyspace, key): (&str, String)| Operation::Get { keyspace: keyspace.into(), key: key.into() };
    let (keyspace, key) = ("members".to_string(), |member: &u8| member.to_string().into_bytes());
    let gets = places(object).into_iter().map(get);
    match what {
        Use::Read => gets.collect(),
        Use::Write(value) => vec![put("registers", "register", value.to_le_bytes(), None)],
        Use::Add(amount) => {
            let operand = amount.to_le_bytes().to_vec();
            let merge = Operation::Merge { keyspace: "sums".into(), key: b"sum".into(), operand };
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
        Use::Clear => vec![Operation::DeleteRange { keyspace, start: Vec::new(), end: None }],
        Use::Grant { value, ttl_ms } => {
            gets.chain([put("leases", "lease", value.to_le_bytes(), Some(*ttl_ms))]).collect()
        }
        Use::Renew { ttl_ms } => {
            let (keyspace, key) = ("leases".to_string(), b"lease".to_vec());
            gets.chain([Operation::Expire { keyspace, key, ttl_ms: Some(*ttl_ms) }]).collect()
        }
    }
}

/// What the values that a command got say.
fn found(object: usize, what: &Use, values: Vec<Option<&[u8]>>) -> Result<Found, String> {
    let first = values.first().copied().flatten();
    Ok(match (object, what) {
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
