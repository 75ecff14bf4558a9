'use strict'

// Random calls, compared with a sorted array: one seed for each of many short histories, so that a
// failure can be repeated.

const test = require('tape')
const { EskerLevel } = require('..')
const { newLocation } = require('./directories')

const SEEDS = 25
const STEPS = 120

// Numbers below `most` from a linear congruential generator.
const generator = function (seed) {
  let state = BigInt(seed) + 1n
  return function (most) {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn
    return Number((state >> 33n) % BigInt(most))
  }
}

// Few bytes, so that keys meet, are prefixes of one another, and are at the ends of all bytes.
const BYTES = [0, 1, 0x61, 0x62, 0xc3, 0xff]
const keyFrom = (random) => Buffer.from(Array.from({ length: random(4) }, () => BYTES[random(6)]))
const valueFrom = (random) =>
  Buffer.alloc(random(8) === 0 ? 40000 + random(9) : random(20), random(256))

class Model {
  constructor(entries = []) {
    this.entries = entries
  }

  put(key, value) {
    this.del(key)
    const at = this.entries.findIndex((entry) => entry[0].compare(key) > 0)
    this.entries.splice(at < 0 ? this.entries.length : at, 0, [key, value])
  }

  del(key) {
    this.entries = this.entries.filter((entry) => !entry[0].equals(key))
  }

  get(key) {
    return this.entries.find((entry) => entry[0].equals(key))?.[1]
  }

  range(options) {
    const isInside = function ([key]) {
      if (options.gte !== undefined ? key.compare(options.gte) < 0 : false) return false
      if (options.gte === undefined && options.gt !== undefined && key.compare(options.gt) <= 0)
        return false
      if (options.lte !== undefined ? key.compare(options.lte) > 0 : false) return false
      return !(
        options.lte === undefined &&
        options.lt !== undefined &&
        key.compare(options.lt) >= 0
      )
    }
    const found = this.entries.filter(isInside)
    if (options.reverse) found.reverse()
    return found.slice(0, options.limit ?? Infinity)
  }

  copy() {
    return new Model(this.entries.slice())
  }
}

const rangeFrom = function (random) {
  const options = { reverse: random(2) === 0 }
  for (const name of ['gt', 'gte', 'lt', 'lte'])
    if (random(3) === 0) options[name] = keyFrom(random)
  if (random(3) === 0) options.limit = random(6)
  if (random(3) === 0) options.highWaterMarkBytes = random(50)
  return options
}

const hex = (entries) =>
  entries.map((entry) => entry.map((bytes) => bytes.toString('hex').slice(0, 20)))

// In random portions, with seeks.
const walk = async function (random, db, options, model) {
  const iterator = db.iterator(options)
  const [found, expected] = [[], []]
  let left = model.range(options)

  for (let step = 0; step < 6; step++) {
    if (random(4) === 0) {
      const target = keyFrom(random)
      iterator.seek(target)
      const all = model.range({ ...options, limit: undefined })
      const isInside =
        new Model([[target, target]]).range({ ...options, limit: undefined }).length > 0
      const isBehind = ([key]) =>
        options.reverse ? key.compare(target) <= 0 : key.compare(target) >= 0
      // The limit is that of the whole iterator; one that has reached it stays at its end.
      left = (isInside ? all.filter(isBehind) : []).slice(
        0,
        (options.limit ?? Infinity) - iterator.count
      )
    } else if (random(2) === 0) {
      const entry = await iterator.next()
      found.push(entry ?? [])
      expected.push(left.shift() ?? [])
    } else {
      const size = 1 + random(5)
      const entries = []
      while (entries.length < size) {
        const more = await iterator.nextv(size - entries.length)
        if (more.length === 0) break
        entries.push(...more)
      }
      found.push(...entries)
      expected.push(...left.splice(0, size))
    }
  }

  await iterator.close()
  return [found, expected]
}

const step = async function (random, db, model, snapshots) {
  const check = (what, found, expected) => {
    const [a, b] = [JSON.stringify(hex(found)), JSON.stringify(hex(expected))]
    if (a !== b) throw new Error(`${what}: ${a}, not ${b}`)
  }
  const asEntry = (value) => (value === undefined ? [] : [value])
  const key = keyFrom(random)
  const value = valueFrom(random)

  switch (random(14)) {
    case 0:
    case 1:
    case 2:
      await db.put(key, value)
      return model.put(key, value)
    case 3:
      await db.del(key)
      return model.del(key)
    case 4: {
      const operations = Array.from({ length: random(9) }, () => {
        return {
          type: random(3) === 0 ? 'del' : 'put',
          key: keyFrom(random),
          value: valueFrom(random)
        }
      })
      if (random(2) === 0) {
        await db.batch(operations)
      } else {
        const batch = db.batch()
        for (const { type, key, value } of operations)
          type === 'put' ? batch.put(key, value) : batch.del(key)
        await batch.write()
      }
      for (const { type, key, value } of operations)
        type === 'put' ? model.put(key, value) : model.del(key)
      return
    }
    case 5: {
      const options = rangeFrom(random)
      if (options.gt === undefined && options.gte === undefined) options.gte = key
      const gone = model.range(options)
      await db.clear(options)
      return gone.forEach((entry) => model.del(entry[0]))
    }
    case 6:
      snapshots.push([db.snapshot(), model.copy()])
      if (snapshots.length > 3) await snapshots.shift()[0].close()
      return
    case 7:
      return db.compactRange(Buffer.alloc(0), Buffer.alloc(4, 0xff))
    case 8:
      for (const [snapshot] of snapshots.splice(0)) await snapshot.close()
      await db.close()
      return db.open()
    default: {
      const [snapshot, state] = snapshots[random(snapshots.length + 2)] ?? [undefined, model]
      const keys = [key, ...Array.from({ length: 5 }, () => keyFrom(random))]
      const expected = keys.map((key) => asEntry(state.get(key)))
      check('get', [asEntry(await db.get(key, { snapshot }))], expected.slice(0, 1))
      check('getSync', [asEntry(db.getSync(key, { snapshot }))], expected.slice(0, 1))
      check('getMany', (await db.getMany(keys, { snapshot })).map(asEntry), expected)
      const has = await db.hasMany(keys, { snapshot })
      check(
        'hasMany',
        [[Buffer.from(String(has))]],
        [[Buffer.from(String(expected.map((entry) => entry.length > 0)))]]
      )
      const options = { ...rangeFrom(random), snapshot }
      check(JSON.stringify(options), await db.iterator(options).all(), state.range(options))
      check('keys', [await db.keys(options).all()], [state.range(options).map((entry) => entry[0])])
      check('walk', ...(await walk(random, db, options, state)))
    }
  }
}

test('random calls', async function (t) {
  for (let seed = 0; seed < SEEDS; seed++) {
    const random = generator(seed)
    const db = new EskerLevel(newLocation(), { keyEncoding: 'buffer', valueEncoding: 'buffer' })
    const model = new Model()
    const snapshots = []
    await db.open()

    try {
      for (let i = 0; i < STEPS; i++) await step(random, db, model, snapshots)
      t.pass(`seed ${seed}`)
    } catch (err) {
      t.fail(`seed ${seed}: ${err.stack.slice(0, 1000)}`)
    }

    await db.close()
  }
})
