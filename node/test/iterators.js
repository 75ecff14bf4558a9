'use strict'

// Reading ahead: what is read in which portions must not show.

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
