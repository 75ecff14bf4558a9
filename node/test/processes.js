'use strict'

// How processes and worker threads end while databases are open and calls are under way; and the
// collection of garbage in any order. Each in a process of its own, which must not crash.

const test = require('tape')
const { fork } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: pause } = require('node:timers/promises')
const { Worker } = require('node:worker_threads')
const { EskerLevel } = require('..')
const { program, run } = require('./children')
const { newLocation } = require('./directories')

const keysOf = async function (location) {
  const db = new EskerLevel(location)
  await db.open()
  const keys = await db.keys().all()
  await db.close()
  return keys
}

const ends = async function (t, what, code, name, args, options) {
  const result = await run(name, args, options)
  t.is(result.signal, null, `${what}: no signal`)
  t.is(result.code, code, `${what}: exit code ${code}; ${result.errors.slice(0, 400)}`)
  return result.output.trim()
}

test('a process that ends with an open database', async function (t) {
  const codes = {
    'by itself': 0,
    'by process.exit()': 3,
    'by process.exit() in a callback': 3,
    'by an exception': 1,
    'by a rejection': 1,
    'while it closes': 3,
    'while it closes by itself': 0,
    'while another opens': 3
  }

  for (const [ending, code] of Object.entries(codes)) {
    for (const UV_THREADPOOL_SIZE of ['1', '4']) {
      const location = newLocation()
      const what = `${ending}, ${UV_THREADPOOL_SIZE} threads`
      await ends(t, what, code, 'endings', [location, ending], { env: { UV_THREADPOOL_SIZE } })
      t.ok((await keysOf(location)).includes('acknowledged'), 'what was acknowledged is there')
    }
  }
})

test('a process that is killed', async function (t) {
  const location = newLocation()
  const result = await run('endings', [location, 'by a signal'])
  t.is(result.signal, 'SIGKILL')
  t.ok((await keysOf(location)).includes('acknowledged'))
})

test('objects that are collected in any order', async function (t) {
  const output = await ends(t, 'garbage', 0, 'garbage', [newLocation()], { flags: ['--expose-gc'] })
  t.is(output, '24')
})

test('memory is given back', async function (t) {
  await ends(t, 'memory', 0, 'memory', [newLocation()], { flags: ['--expose-gc'] })
})

test('worker threads that end with open databases', async function (t) {
  const location = newLocation()

  for (const ending of ['terminate', 'exit', 'itself', 'throw']) {
    const worker = new Worker(program('worker'), { workerData: { location, ending } })
    const errors = []
    worker.on('error', (err) => errors.push(err.message))
    const exited = new Promise((resolve) => worker.on('exit', resolve))
    // Not by `once()`, which an error ends.
    t.is(await new Promise((resolve) => worker.on('message', resolve)), 'filled', ending)
    if (ending === 'terminate') await worker.terminate()
    await exited
    t.same(errors, ending === 'throw' ? ['planned'] : [])
    // A thread that waits for writes has the database for a moment more; the others have none.
    let attempts = ending === 'itself' ? 1 : 100
    let keys = await keysOf(location).catch((err) => err.cause.code)
    while (keys === 'LEVEL_LOCKED' && --attempts > 0) {
      await pause(20)
      keys = await keysOf(location).catch((err) => err.cause.code)
    }
    t.ok(keys.includes('acknowledged'), 'the lock was released')
  }
})

test('a process whose only users of the library are worker threads', async function (t) {
  await ends(t, 'unloaded', 0, 'unloaded', [newLocation()])
})

test('several threads have several databases', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location)
  await db.put('a', '1')
  const workers = Array.from({ length: 4 }, () => {
    return new Worker(program('worker-apart'), { workerData: { location, own: newLocation() } })
  })
  const exits = workers.map((worker) => once(worker, 'exit'))

  for (const [message] of await Promise.all(workers.map((worker) => once(worker, 'message')))) {
    t.same(message, ['LEVEL_LOCKED', '2'])
  }

  await Promise.all(exits)
  t.is(await db.get('a'), '1')
  await db.close()
})

test('a child process that is forked while a database is open', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location)
  await db.put('a', '1')
  const child = fork(program('forked'), [location])
  const answer = async (message) => (await once(child, 'message', child.send(message)))[0]
  t.same((await once(child, 'message'))[0], { code: 'LEVEL_LOCKED', isHolderNamed: true })
  await db.put('b', '2')
  t.same(await answer('read'), ['a', 'b'], 'it reads beside the writer')
  await db.close()
  await db.open()
  t.is(await db.get('b'), '2', 'the child inherited no lock')
  await db.close()
  t.same(await answer('open'), ['a', 'b'], 'now it can open')
  child.disconnect()
  t.is((await once(child, 'exit'))[0], 0)
})

test('calls are made in the pool, not on the event loop', async function (t) {
  const env = { UV_THREADPOOL_SIZE: '1' }
  t.is(await ends(t, 'the event loop', 0, 'event-loop', [newLocation()], { env }), '50')
})
