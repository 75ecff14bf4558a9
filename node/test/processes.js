'use strict'

// How processes and worker threads end while databases are open and calls are under way; and the
// collection of garbage in any order. Each in a process of its own, which must not crash.

const test = require('tape')
const { fork } = require('node:child_process')
const { once } = require('node:events')
const path = require('node:path')
const { Worker } = require('node:worker_threads')
const { EskerLevel } = require('..')
const { run } = require('./children')
const { newLocation } = require('./directories')

const library = JSON.stringify(require.resolve('..'))

const keysOf = async function (location) {
  const db = new EskerLevel(location)
  await db.open()
  const keys = await db.keys().all()
  await db.close()
  return keys
}

const ends = async function (t, name, source, code, args, flags, env) {
  const result = await run(source, args, flags, env)
  t.is(result.signal, null, `${name}: no signal`)
  t.is(result.code, code, `${name}: exit code ${code}; ${result.errors.slice(0, 400)}`)
  return result.output
}

const BUSY = `
  const fill = async function (db) {
    await db.put('acknowledged', '1')
    for (let i = 0; i < 300; i++) {
      db.put('pending ' + i, 'v'.repeat(1000)).catch(() => {})
      db.put('synced ' + i, 'v', { sync: true }).catch(() => {})
      db.get('pending ' + i).catch(() => {})
      db.batch([{ type: 'put', key: 'batch ' + i, value: Buffer.alloc(100000), valueEncoding: 'buffer' }]).catch(() => {})
      db.iterator({ limit: 10 }).all().catch(() => {})
    }
    db.compactRange('', '\\uffff').catch(() => {})
    return [db.snapshot(), db.iterator(), db.batch().put('a', 'b')]
  }
`

test('a process that ends with an open database', async function (t) {
  const endings = {
    'by itself': [0, ''],
    'by process.exit()': [3, 'process.exit(3)'],
    'by process.exit() in a callback': [3, "db.put('x', 'y').then(() => process.exit(3))"],
    'by an exception': [1, "throw new Error('planned')"],
    'by a rejection': [1, "Promise.reject(new Error('planned'))"],
    'while it closes': [3, 'db.close(); process.exit(3)'],
    'while it closes by itself': [0, 'db.close()'],
    'while another opens': [3, "new EskerLevel(location + '2').open(); process.exit(3)"]
  }
  for (const [name, [code, ending]] of Object.entries(endings)) {
    for (const threads of ['1', '4']) {
      const location = newLocation()
      await ends(t, `${name}, ${threads} threads`, `${BUSY}
        const location = process.argv[1]
        const db = new EskerLevel(location)
        db.open().then(() => fill(db)).then((kept) => { globalThis.kept = kept; ${ending} })`,
      code, [location], [], { UV_THREADPOOL_SIZE: threads })
      t.ok((await keysOf(location)).includes('acknowledged'), `${name}: what was acknowledged is there`)
    }
  }
})

test('a process that is killed', async function (t) {
  const location = newLocation()
  const result = await run(`${BUSY}
    const db = new EskerLevel(process.argv[1])
    db.open().then(() => fill(db)).then(() => process.kill(process.pid, 'SIGKILL'))`, [location])
  t.is(result.signal, 'SIGKILL')
  t.ok((await keysOf(location)).includes('acknowledged'))
})

test('objects that are collected in any order', async function (t) {
  const location = newLocation()
  const output = await ends(t, 'garbage', `
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    const collect = async () => { for (let i = 0; i < 5; i++) { gc(); await turn() } }
    const location = process.argv[1]
    async function once (order) {
      let db = new EskerLevel(location)
      await db.open()
      await db.batch([{ type: 'put', key: 'a', value: '1' }, { type: 'put', key: 'b', value: '2' }])
      let snapshot = db.snapshot(), iterator = db.iterator(), batch = db.batch().put('c', '3'), keys = db.keys({ snapshot })
      await iterator.next()
      let pending = db.get('a')
      for (const name of order) {
        if (name === 'db') db = null
        if (name === 'snapshot') snapshot = null
        if (name === 'iterator') iterator = null
        if (name === 'batch') batch = null
        if (name === 'keys') keys = null
        if (name === 'pending') pending = null
        await collect()
      }
    }
    const permute = (list) => list.length < 2 ? [list] : list.flatMap((x, i) => permute(list.toSpliced?.(i, 1) ?? list.filter((y) => y !== x)).map((rest) => [x, ...rest]))
    async function main () {
      const orders = permute(['db', 'snapshot', 'iterator', 'batch', 'keys']).filter((_, i) => i % 5 === 0)
      for (const order of orders) {
        await once(order)
        // Nothing refers to the database now: its lock goes with it.
        let opened = false
        for (let i = 0; i < 100 && !opened; i++) {
          await collect()
          const db = new EskerLevel(location)
          try { await db.open(); await db.close(); opened = true } catch (err) { if (err.cause.code !== 'LEVEL_LOCKED') throw err }
        }
        if (!opened) throw new Error('the lock was not released: ' + order)
      }
      console.log(orders.length)
    }
    main()`, 0, [location], ['--expose-gc'])
  t.is(output.trim(), '24')
})

test('memory is given back', async function (t) {
  await ends(t, 'memory', `
    async function main () {
      const db = new EskerLevel(process.argv[1], { valueEncoding: 'buffer', memoryBudget: 32 << 20 })
      const value = Buffer.alloc(1 << 20, 7)
      for (let i = 0; i < 20; i++) await db.put(String(i), value)
      const round = async () => {
        for (let i = 0; i < 20; i++) await db.get(String(i))
        await db.getMany(Array.from({ length: 20 }, (_, i) => String(i)))
        for await (const [, found] of db.iterator()) if (found.length !== value.length) throw new Error('short')
        for (let i = 0; i < 200; i++) { db.snapshot(); db.iterator(); db.batch().put('x', value) }
        await db.close()
        await db.open()
        gc()
        await new Promise((resolve) => setImmediate(resolve))
        gc()
      }
      for (let i = 0; i < 5; i++) await round()
      const before = process.memoryUsage.rss()
      for (let i = 0; i < 10; i++) await round()
      const grown = process.memoryUsage.rss() - before
      // Ten rounds read 600 MiB, and add 2000 MiB to batches.
      if (grown > 200 << 20) throw new Error('grown by ' + grown + ' bytes')
      await db.close()
    }
    main()`, 0, [newLocation()], ['--expose-gc'])
})

test('worker threads that end with open databases', async function (t) {
  const location = newLocation()
  const source = `
    const { EskerLevel } = require(${library})
    const { parentPort, workerData } = require('node:worker_threads')
    ${BUSY}
    const db = new EskerLevel(workerData.location)
    db.open().then(() => fill(db)).then((kept) => { globalThis.kept = kept; parentPort.postMessage('filled'); if (workerData.exits) process.exit(2) })
      .catch((err) => parentPort.postMessage(err.cause?.code ?? err.message))
  `
  for (const ending of ['terminate', 'exit', 'itself', 'throw']) {
    const end = ending === 'throw' ? ".then(() => { throw new Error('planned') })" : ''
    const worker = new Worker(source + end, { eval: true, workerData: { location, exits: ending === 'exit' } })
    const errors = []
    worker.on('error', (err) => errors.push(err.message))
    const exited = new Promise((resolve) => worker.on('exit', resolve))
    // Not by `once()`, which an error ends.
    t.is(await new Promise((resolve) => worker.on('message', resolve)), 'filled', ending)
    if (ending === 'terminate') await worker.terminate()
    await exited
    t.same(errors, ending === 'throw' ? ['planned'] : [])
    t.ok((await keysOf(location)).includes('acknowledged'), `${ending}: the lock was released, and it opens here`)
  }
})

test('a process whose only user of the library was a worker thread', async function (t) {
  // Node unloads what no thread has loaded any more.
  await ends(t, 'unloaded', `
    const { Worker } = require('node:worker_threads')
    const source = "const { EskerLevel } = require(" + JSON.stringify(${library}) + "); const db = new EskerLevel(require('worker_threads').workerData); db.put('a', 'b').then(() => db.get('a')).then(() => process.exit(0))"
    async function main () {
      for (let i = 0; i < 10; i++) {
        const worker = new Worker(source, { eval: true, workerData: process.argv[1] + i })
        await new Promise((resolve) => worker.on('exit', resolve))
      }
    }
    main()`, 0, [newLocation()])
})

test('one database is for one thread, several threads have several', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location)
  await db.put('a', '1')
  const source = `
    const { EskerLevel } = require(${library})
    const { parentPort, workerData } = require('node:worker_threads')
    const open = async (location) => { const db = new EskerLevel(location); await db.open(); return db }
    open(workerData).catch((err) => err.cause.code)
      .then(async (code) => {
        const db = await open(workerData + ' of its own')
        await db.put('a', '2')
        const value = await db.get('a')
        await db.close()
        parentPort.postMessage([code, value])
      })
  `
  const workers = Array.from({ length: 4 }, (_, i) => new Worker(source.replaceAll(' of its own', ` ${i}`), { eval: true, workerData: location }))
  const exits = workers.map((worker) => once(worker, 'exit'))
  for (const [message] of await Promise.all(workers.map((worker) => once(worker, 'message')))) t.same(message, ['LEVEL_LOCKED', '2'])
  await Promise.all(exits)
  t.is(await db.get('a'), '1')
  await db.close()
})

test('a child process that is forked while a database is open', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location)
  await db.put('a', '1')
  const child = fork(path.join(__dirname, 'forked-child.js'), [location])
  t.same((await once(child, 'message'))[0], { code: 'LEVEL_LOCKED', holder: true }, 'the child sees the lock')
  await db.put('b', '2')
  t.same((await once(child, 'message', child.send('read')))[0], ['a', 'b'], 'it reads beside the writer')
  await db.close()
  await db.open()
  t.is(await db.get('b'), '2', 'the child inherited no lock')
  await db.close()
  t.same((await once(child, 'message', child.send('open')))[0], ['a', 'b'], 'now it can open')
  child.disconnect()
  t.is((await once(child, 'exit'))[0], 0)
})

test('calls are made in the pool, not on the event loop', async function (t) {
  // The only thread of the pool reads from a pipe in which nothing comes: no call can be done, and
  // the event loop turns.
  const output = await ends(t, 'the event loop', `
    const fs = require('fs')
    const { execFileSync } = require('child_process')
    async function main () {
      const db = new EskerLevel(process.argv[1])
      await db.put('a', '1')
      const pipe = process.argv[1] + '.pipe'
      execFileSync('mkfifo', [pipe])
      const blocked = fs.promises.readFile(pipe)
      const calls = [db.put('b', '2'), db.get('a'), db.getMany(['a']), db.has('a'), db.del('c'), db.batch([{ type: 'del', key: 'd' }]),
        db.batch().del('d').write(), db.clear({ gt: 'x' }), db.iterator().next(), db.iterator().all(), db.approximateSize('a', 'b'),
        db.compactRange('a', 'b'), db.iterator().nextv(10), db.expiresAt('a')]
      let settled = 0
      for (const call of calls) call.then(() => { settled++ })
      const closed = db.sublevel('x').open().then(() => 0)
      for (let i = 0; i < 1000; i++) await new Promise((resolve) => setImmediate(resolve))
      if (settled !== 0) throw new Error(settled + ' calls were made on the event loop')
      if (db.getSync('a') !== '1') throw new Error('getSync')
      fs.writeFileSync(pipe, 'go on')
      await blocked
      await closed
      await Promise.all(calls)
      await db.close()
      console.log(settled)
    }
    main()`, 0, [newLocation()], [], { UV_THREADPOOL_SIZE: '1' })
  t.is(output.trim(), '14')
})
