'use strict'

// Reading ahead: what is read in which portions must not show.

const fs = require('node:fs')
const path = require('node:path')
const test = require('tape')
const { EskerLevel } = require('..')
const { newLocation } = require('./directories')

const keyOf = (i) => String(i).padStart(5, '0')

const filled = async function (number) {
  const db = new EskerLevel(newLocation())
  await db.batch(
    Array.from({ length: number }, (_, i) => ({ type: 'put', key: keyOf(i), value: `value ${i}` }))
  )
  return db
}

test('all ways to read yield the same', async function (t) {
  const db = await filled(5000)
  const expected = Array.from({ length: 5000 }, (_, i) => [keyOf(i), `value ${i}`])

  for (const reverse of [false, true]) {
    for (const highWaterMarkBytes of [undefined, 0, 1, 1000, 1e9]) {
      const options = { reverse, highWaterMarkBytes }
      const name = JSON.stringify(options)
      const sorted = reverse ? expected.slice().reverse() : expected
      t.same(await db.iterator(options).all(), sorted, `all() ${name}`)
      t.same(
        await db.keys(options).all(),
        sorted.map((entry) => entry[0]),
        `keys ${name}`
      )
      t.same(
        await db.values(options).all(),
        sorted.map((entry) => entry[1]),
        `values ${name}`
      )
      const one = []
      for await (const entry of db.iterator(options)) one.push(entry)
      t.same(one, sorted, `next() ${name}`)
      const some = []
      const iterator = db.iterator(options)
      for (let size = 1; ; size = (size * 3) % 101) {
        const entries = await iterator.nextv(size)
        if (entries.length === 0) break
        some.push(...entries)
        const entry = await iterator.next()
        if (entry !== undefined) some.push(entry)
      }
      await iterator.close()
      t.same(some, sorted, `nextv() and next() ${name}`)
    }
  }

  t.same(
    await db.iterator({ keys: false }).all(),
    expected.map((entry) => [undefined, entry[1]])
  )
  t.same(
    await db.iterator({ values: false }).all(),
    expected.map((entry) => [entry[0], undefined])
  )
  t.is((await db.iterator({ keys: false, values: false }).all()).length, 5000)
  await db.close()
})

test('limits and seeks, in any order', async function (t) {
  const db = await filled(3000)
  const iterator = db.iterator({ limit: 10 })
  t.is((await iterator.next())[0], keyOf(0))
  t.is((await iterator.next())[0], keyOf(1))
  iterator.seek(keyOf(2000))
  t.is((await iterator.next())[0], keyOf(2000))
  iterator.seek(keyOf(5))
  t.same(
    (await iterator.nextv(100)).map((entry) => entry[0]),
    [5, 6, 7, 8, 9, 10, 11].map(keyOf),
    'ten in all'
  )
  t.is(await iterator.next(), undefined)
  await iterator.close()

  for (const reverse of [false, true]) {
    const keys = db.keys({ reverse, gte: keyOf(100), lt: keyOf(200) })
    keys.seek(keyOf(150) + 'x')
    t.is(await keys.next(), keyOf(reverse ? 150 : 151))
    for (const outside of [keyOf(50), keyOf(200), keyOf(2500), '', 'z']) {
      keys.seek(outside)
      t.is(await keys.next(), undefined, `outside of the range: ${outside}`)
    }
    keys.seek(keyOf(100))
    t.is(await keys.next(), keyOf(100))
    await keys.close()
  }
  await db.close()
})

test('an iterator sees the moment at which it was made', async function (t) {
  const db = await filled(10)
  const iterator = db.keys()
  const promise = db.put('z', 'v')
  const later = db.keys()
  await promise
  await db.clear()
  t.is((await iterator.all()).length, 10)
  t.ok((await later.all()).length >= 10)
  t.is((await db.keys().all()).length, 0)
  await db.close()
})

test('an aborted iterator ends, wherever it is', async function (t) {
  const db = await filled(3000)
  for (const taken of [0, 1, 2, 1500]) {
    const controller = new AbortController()
    const iterator = db.iterator({ signal: controller.signal, highWaterMarkBytes: 1e9 })
    for (let i = 0; i < taken; i++) await iterator.next()
    const promise = iterator.all()
    controller.abort()
    try {
      await promise
      t.fail('not aborted')
    } catch (err) {
      t.is(err.code, 'LEVEL_ABORTED')
      t.is(err.name, 'AbortError')
    }
    await iterator.close()
  }
  t.is((await db.iterator().all()).length, 3000)
  await db.close()
})

test('many iterators at once', async function (t) {
  const db = await filled(2000)
  const counts = await Promise.all(
    Array.from({ length: 100 }, async (_, i) => {
      let count = 0
      for await (const key of db.keys({ gte: keyOf(i * 20), reverse: i % 2 === 0 }))
        count += key.length > 0 ? 1 : 0
      return count
    })
  )
  t.same(
    counts,
    Array.from({ length: 100 }, (_, i) => 2000 - i * 20)
  )
  await db.close()
})

test('what was read before damage is not lost', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location, { compression: false, blockSize: 4096 })
  const number = 5000
  await db.batch(
    Array.from({ length: number }, (_, i) => {
      return { type: 'put', key: keyOf(i), value: String(i).repeat(10) }
    })
  )
  await db.compactRange('', '\uffff')
  await db.close()

  const size = (name) => fs.statSync(path.join(location, name)).size
  const [table] = fs.readdirSync(location).filter(isTable).sort((a, b) => size(b) - size(a))
  const bytes = fs.readFileSync(path.join(location, table))
  bytes[bytes.indexOf('2345'.repeat(10))] ^= 1
  fs.writeFileSync(path.join(location, table), bytes)

  await db.open()
  const damaged = []
  for (let i = 0; i < number; i++) {
    if ((await codeOf(db.get(keyOf(i)))) !== undefined) damaged.push(i)
  }
  t.ok(damaged.includes(2345) && damaged.length < 500, `${damaged.length} keys are damaged`)

  const all = Array.from({ length: number }, (_, i) => keyOf(i))
  for (const reverse of [false, true]) {
    // Backwards the engine has an entry only once it has seen the key in front of it.
    const before = reverse ? all.slice(damaged.at(-1) + 2).reverse() : all.slice(0, damaged[0])
    const isBefore = (keys) => keys.length === before.length && String(keys) === String(before)
    for (const highWaterMarkBytes of [1, 1000, undefined, 1e9]) {
      const options = { reverse, highWaterMarkBytes }
      const name = JSON.stringify(options)
      const iterator = db.iterator(options)
      const one = []
      t.is(await codeOf(nexts(iterator, one)), 'LEVEL_CORRUPTION', `next() ${name}`)
      t.ok(isBefore(one), `${one.length} of ${before.length} entries`)
      iterator.seek(before.at(-10))
      t.is((await iterator.next())[0], before.at(-10), 'it can seek')
      await iterator.close()

      const again = db.iterator(options)
      const some = []
      t.is(await codeOf(nextvs(again, some)), 'LEVEL_CORRUPTION', `nextv() ${name}`)
      t.ok(isBefore(some), `${some.length} of ${before.length} entries`)
      again.seek(before.at(-10))
      const isWhole = highWaterMarkBytes !== 1
      t.is((await again.nextv(700)).length, isWhole ? 10 : 1, 'the failure is behind them again')
      again.seek(before.at(-5))
      t.is((await again.nextv(5)).length, isWhole ? 5 : 1, 'a seek forgets it')
      await again.close()
      t.is(await codeOf(db.values(options).all()), 'LEVEL_CORRUPTION', `all() ${name}`)
    }
  }
  await db.close()
})

const isTable = (name) => name.endsWith('.table')

const nexts = async function (iterator, keys) {
  for (let entry; (entry = await iterator.next()) !== undefined; ) keys.push(entry[0])
}

const nextvs = async function (iterator, keys) {
  for (let entries; (entries = await iterator.nextv(700)).length > 0; )
    keys.push(...entries.map((entry) => entry[0]))
}

const codeOf = async function (promise) {
  try {
    await promise
  } catch (err) {
    return err.code
  }
}
