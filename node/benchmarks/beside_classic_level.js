'use strict'

// Measures esker-level beside classic-level: every workload in a process of its own for each round
// and each of the two, which take turns; the median of the rounds, the spread, and the ratio.
//
//   npm ci && npm run build && npm ci --prefix benchmarks
//   node benchmarks/beside_classic_level.js [--num 100000] [--rounds 5] [--only put,get]
//
// Both have the same write buffer, the same cache, and compression, and neither syncs.

const { fork } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { parseArgs } = require('node:util')

const ENGINES = ['esker-level', 'classic-level']
const OPTIONS = {
  compression: true,
  cacheSize: 64 << 20,
  writeBufferSize: 64 << 20,
  valueEncoding: 'buffer'
}
const VALUE_BYTES = 100
const CONCURRENT = 1000

// Keys in an order that looks random and is the same in every run: the step has no factor in
// common with the number of keys.
const keyOf = (i) => String(i).padStart(16, '0')
const scattered = (i, num) => keyOf((i * 7919 + 13) % num)

// Compresses to about a half.
const valueOf = function (i) {
  const value = Buffer.alloc(VALUE_BYTES, 'esker')
  for (let at = 0; at < VALUE_BYTES / 2; at += 4)
    value.writeUInt32LE(Math.imul(i + at, 2654435761) >>> 0, at)
  return value
}

const fill = async function (db, num) {
  for (let i = 0; i < num;) {
    const operations = []
    for (; i < num && operations.length < CONCURRENT; i++) {
      operations.push({ type: 'put', key: keyOf(i), value: valueOf(i) })
    }
    await db.batch(operations)
  }
  await db.compactRange(keyOf(0), keyOf(num))
}

// The number of calls at a time, each call with its number.
const concurrently = async function (num, call) {
  for (let i = 0; i < num;) {
    const calls = []
    for (; i < num && calls.length < CONCURRENT; i++) calls.push(call(i))
    await Promise.all(calls)
  }
}

// Each returns how many operations it was.
const WORKLOADS = {
  async 'put, one at a time'(db, num) {
    const some = Math.ceil(num / 5)
    for (let i = 0; i < some; i++) await db.put(scattered(i, num), valueOf(i))
    return some
  },
  async 'put, 1000 at a time'(db, num) {
    await concurrently(num, (i) => db.put(scattered(i, num), valueOf(i)))
    return num
  },
  async 'batch of 1000 puts'(db, num) {
    for (let i = 0; i < num;) {
      const operations = []
      for (; i < num && operations.length < 1000; i++) {
        operations.push({ type: 'put', key: scattered(i, num), value: valueOf(i) })
      }
      await db.batch(operations)
    }
    return num
  },
  async 'chained batch of 1000 puts'(db, num) {
    for (let i = 0; i < num;) {
      const batch = db.batch()
      for (; i < num && batch.length < 1000; i++) batch.put(scattered(i, num), valueOf(i))
      await batch.write()
    }
    return num
  },
  filled: {
    async 'get, one at a time'(db, num) {
      const some = Math.ceil(num / 5)
      for (let i = 0; i < some; i++) await db.get(scattered(i, num))
      return some
    },
    async 'get, 1000 at a time'(db, num) {
      await concurrently(num, (i) => db.get(scattered(i, num)))
      return num
    },
    async getSync(db, num) {
      for (let i = 0; i < num; i++) db.getSync(scattered(i, num))
      return num
    },
    async 'getMany of 100'(db, num) {
      const keysFrom = (i) => Array.from({ length: 100 }, (_, j) => scattered(i + j, num))
      for (let i = 0; i < num; i += 100) await db.getMany(keysFrom(i))
      return num
    },
    async 'has, 1000 at a time'(db, num) {
      await concurrently(num, (i) => db.has(scattered(i, num)))
      return num
    },
    async 'iterator, next()'(db) {
      let count = 0
      for await (const [key] of db.iterator()) count += key.length > 0 ? 1 : 0
      return count
    },
    async 'iterator, all()'(db) {
      return (await db.iterator().all()).length
    },
    async 'keys, all()'(db) {
      return (await db.keys().all()).length
    },
    async 'seek and 10 entries'(db, num) {
      const some = Math.ceil(num / 20)
      for (let i = 0; i < some; i++) await db.iterator({ gte: scattered(i, num), limit: 10 }).all()
      return some
    },
    async 'clear of everything'(db, num) {
      await db.clear()
      return num
    }
  }
}

const named = { ...WORKLOADS, ...WORKLOADS.filled }
delete named.filled

// In a process of its own: microseconds for each operation.
const measure = async function ({ engine, workload, num, location }) {
  const Level =
    engine === 'esker-level' ? require('..').EskerLevel : require('classic-level').ClassicLevel
  const db = new Level(location, OPTIONS)
  await db.open()
  if (workload in WORKLOADS.filled) await fill(db, num)
  const start = process.hrtime.bigint()
  const operations = await named[workload](db, num)
  const nanoseconds = Number(process.hrtime.bigint() - start)
  await db.close()
  return nanoseconds / 1000 / operations
}

const measureInChild = function (task) {
  return new Promise(function (resolve, reject) {
    const child = fork(__filename, ['--child'])
    child.on('message', resolve)
    child.on('error', reject)
    child.on('exit', function (code) {
      if (code !== 0) reject(new Error(`${task.engine}, ${task.workload}: exit code ${code}`))
    })
    child.send(task)
  })
}

const median = (numbers) => numbers.slice().sort((a, b) => a - b)[numbers.length >> 1]

const main = async function () {
  const { values } = parseArgs({
    options: {
      num: { type: 'string', default: '100000' },
      rounds: { type: 'string', default: '5' },
      only: { type: 'string', default: '' }
    }
  })
  const num = Number(values.num)
  const rounds = Number(values.rounds)
  const isWanted = (name) => values.only.split(',').some((part) => name.includes(part))
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'esker-level-benchmark-'))
  const processors = `${os.cpus().length} processors (${os.cpus()[0]?.model.trim()})`
  console.log(
    `${num} keys of 16 bytes, values of ${VALUE_BYTES} bytes, medians of ${rounds} rounds`
  )
  console.log(`Node ${process.version}, ${processors}`)
  console.log('')
  console.log(
    '| microseconds per operation | esker-level | spread | classic-level | spread | ratio |'
  )
  console.log('| --- | --- | --- | --- | --- | --- |')

  for (const workload of Object.keys(named).filter(isWanted)) {
    const times = [[], []]
    for (let round = 0; round < rounds; round++) {
      // The first of one round is the last of the next.
      for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) {
        const location = path.join(root, 'data')
        times[index].push(await measureInChild({ engine: ENGINES[index], workload, num, location }))
        fs.rmSync(location, { recursive: true, force: true })
      }
    }
    const [ours, theirs] = times.map(median)
    const spread = (numbers) =>
      `${Math.min(...numbers).toFixed(3)}-${Math.max(...numbers).toFixed(3)}`
    const cells = [
      ours.toFixed(3),
      spread(times[0]),
      theirs.toFixed(3),
      spread(times[1]),
      `${(theirs / ours).toFixed(2)}x`
    ]
    console.log(`| ${workload} | ${cells.join(' | ')} |`)
  }

  fs.rmSync(root, { recursive: true, force: true })
}

if (process.argv[2] === '--child') {
  process.once('message', async function (task) {
    process.send(await measure(task))
    process.disconnect()
  })
} else {
  main()
}
