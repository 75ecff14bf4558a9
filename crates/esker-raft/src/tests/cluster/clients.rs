//! The clients of a simulated cluster, and what they have seen of a register and of a sum.

use super::super::history::payload;
use super::super::world::{pause, put, random};
use super::replicas::Replicas;
use crate::{Command, KeyValueAnswer, Operation, Reply, Request};
use openraft::ReadPolicy;
use parking_lot::Mutex;
use rand::RngExt;
use rand::rngs::StdRng;
use stateright::semantics::register::{Register, RegisterOp, RegisterRet};
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How clients repeat what was not answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Semantics {
    /// In a session.
    Sessions,
    /// As another request.
    BlindRetries,
}

/// A number that is added to; each answer is the sum.
#[derive(Clone, Debug, Default)]
struct Sum(u64);

#[derive(Clone, Debug)]
enum SumOp {
    Add(u64),
    Read,
}

impl SequentialSpec for Sum {
    type Op = SumOp;
    type Ret = u64;

    fn invoke(&mut self, op: &SumOp) -> u64 {
        if let SumOp::Add(amount) = op {
            self.0 += amount;
        }
        self.0
    }
}

struct Histories {
    register: LinearizabilityTester<u64, Register<u64>>,
    sum: LinearizabilityTester<u64, Sum>,
}

/// The clients at work.
pub struct Clients {
    histories: Arc<Mutex<Histories>>,
    tasks: Vec<JoinHandle<Result<(usize, usize), String>>>,
}

/// How many operations a client makes.
const OPERATIONS: u64 = 10;
/// How often one is repeated before the cluster counts as stuck.
const ATTEMPTS: usize = 2_000;

impl Clients {
    pub fn start(replicas: &Replicas, seed: u64, semantics: Semantics) -> Clients {
        let histories = Histories {
            register: LinearizabilityTester::new(Register(0)),
            sum: LinearizabilityTester::new(Sum::default()),
        };
        let histories = Arc::new(Mutex::new(histories));
        let task = |number: u64| {
            let random = random(seed ^ (number << 32));
            let client = Client { number, replicas: replicas.clone(), random, semantics, session: None, retries: 0 };
            tokio::spawn(client.work(Arc::clone(&histories)))
        };
        let tasks = (1..=4).map(task).collect();
        Clients { histories, tasks }
    }

    /// Waits for the clients, and checks what they have seen; how many operations, and how many
    /// repetitions.
    pub async fn finish(self) -> Result<(usize, usize), String> {
        let (mut operations, mut retries) = (0, 0);
        for task in self.tasks {
            let (done, repeated) = task.await.map_err(|error| error.to_string())??;
            operations += done;
            retries += repeated;
        }
        let histories = self.histories.lock();
        if !histories.register.is_consistent() {
            return Err(format!("the register is not linearizable: {:?}", histories.register));
        }
        if !histories.sum.is_consistent() {
            return Err(format!("the sum is not linearizable: {:?}", histories.sum));
        }
        Ok((operations, retries))
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
    async fn work(mut self, histories: Arc<Mutex<Histories>>) -> Result<(usize, usize), String> {
        if self.semantics == Semantics::Sessions {
            match self.request(Request::OpenSession).await? {
                Reply::SessionOpened(session) => self.session = Some(session),
                other => return Err(format!("a session opens with {other:?}")),
            }
        }
        for operation in 0..OPERATIONS {
            let thought = Duration::from_millis(self.random.random_range(0..1_500));
            pause(thought).await;
            if self.number.is_multiple_of(2) {
                self.use_register(&histories, operation).await?;
            } else {
                self.use_sum(&histories, operation).await?;
            }
        }
        Ok((OPERATIONS as usize, self.retries))
    }

    async fn use_register(&mut self, histories: &Mutex<Histories>, operation: u64) -> Result<(), String> {
        let client = self.number;
        if self.random.random_range(0..2) == 0 {
            histories.lock().register.on_invoke(client, RegisterOp::Read)?;
            let value = self.read("registers", "register").await?;
            histories.lock().register.on_return(client, RegisterRet::ReadOk(value))?;
            return Ok(());
        }
        let value = client * 1_000 + operation;
        histories.lock().register.on_invoke(client, RegisterOp::Write(value))?;
        let lease = format!("lease-{client}");
        // A lease beside it, so that replicas that disagree on time have different states.
        let operations = vec![
            put("registers", "register", value.to_le_bytes(), None),
            put("leases", &lease, value.to_le_bytes(), Some(60_000)),
        ];
        self.write(operation, operations).await?;
        histories.lock().register.on_return(client, RegisterRet::WriteOk)?;
        Ok(())
    }

    async fn use_sum(&mut self, histories: &Mutex<Histories>, operation: u64) -> Result<(), String> {
        let client = self.number;
        if self.random.random_range(0..3) == 0 {
            histories.lock().sum.on_invoke(client, SumOp::Read)?;
            let value = self.read("sums", "sum").await?;
            histories.lock().sum.on_return(client, value)?;
            return Ok(());
        }
        let amount = self.random.random_range(1..100);
        histories.lock().sum.on_invoke(client, SumOp::Add(amount))?;
        let (keyspace, key) = ("sums".to_string(), b"sum".to_vec());
        let operand = amount.to_le_bytes().to_vec();
        let operations = vec![
            Operation::Merge { keyspace: keyspace.clone(), key: key.clone(), operand },
            Operation::Get { keyspace, key },
        ];
        let values = self.write(operation, operations).await?;
        let sum = number(values.first().and_then(Option::as_deref))?;
        histories.lock().sum.on_return(client, sum)?;
        Ok(())
    }

    /// Writes until it is answered.
    async fn write(&mut self, operation: u64, operations: Vec<Operation>) -> Result<Vec<Option<Vec<u8>>>, String> {
        let payload = payload(operations);
        let request = match self.session {
            Some(session) => Request::ApplyOnce { session, number: operation + 1, payload },
            None => Request::Apply(payload),
        };
        match self.request(request).await? {
            Reply::Applied(bytes) => match KeyValueAnswer::from_bytes(&bytes).map_err(|error| error.to_string())? {
                KeyValueAnswer::Done(values) => Ok(values),
                other => Err(format!("a write is answered with {other:?}")),
            },
            other => Err(format!("a write is answered with {other:?}")),
        }
    }

    /// A node to ask: mostly the one that another believes to be the leader.
    async fn node(&mut self) -> u64 {
        let guess = self.random.random_range(1..=self.replicas.nodes);
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
    async fn read(&mut self, keyspace: &str, key: &str) -> Result<u64, String> {
        for _ in 0..ATTEMPTS {
            let node = self.node().await;
            if let Some(reachable) = self.replicas.network.reach(node) {
                let sure = reachable.raft.ensure_linearizable(ReadPolicy::ReadIndex);
                if let Ok(Ok(_)) = timeout(Duration::from_millis(700), sure).await {
                    let database = reachable.machine.database();
                    if let Ok(value) = database.keyspaces()[keyspace].get(key) {
                        return value.map_or(Ok(0), |value| number(Some(&value)));
                    }
                }
            }
            self.retries += 1;
            pause(Duration::from_millis(50)).await;
        }
        Err(format!("client {} cannot read", self.number))
    }
}

fn number(bytes: Option<&[u8]>) -> Result<u64, String> {
    let bytes = bytes.ok_or("there is no value")?;
    bytes.try_into().map(u64::from_le_bytes).map_err(|_| format!("{bytes:?} is no number"))
}
