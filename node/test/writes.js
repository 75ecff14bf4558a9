'use strict'

// Single writes, which go to the pool together and stay writes of their own.

const test = require('tape')
const { EskerLevel } = require('..')
const { newLocation } = require('./directories')

test('writes take effect in the order of their calls', async function (t) {
  for (const sync of [false, true]) {
    const db = new EskerLevel(newLocation(), { mergeOperator: 'stringappend:' })
    await db.open()
    const calls = []
    for (let i = 0; i < 3500; i++)
      calls.push(db.put('a', String(i), { sync }), db.merge('m', 'x', { sync }))
    calls.push(
      db.del('a', { sync }),
      db.put('b', '1', { sync }),
      db.del('b', { sync }),
      db.put('b', '2', { sync })
    )
    await calls.at(-1)
    t.same(await db.getMany(['a', 'b']), [undefined, '2'], 'the last has come after all others')
    t.is((await db.get('m')).length, 3500)
    await Promise.all(calls)

    // Over many turns, none of which waits.
    for (let i = 0; i < 500; i++) {
      calls.push(db.put('turn', String(i), { sync }))
      if (i % 7 === 0) await new Promise((resolve) => setImmediate(resolve))
      if (i % 11 === 0) await undefined
    }
    await calls.at(-1)
    t.is(await db.get('turn'), '499')
    await Promise.all(calls)
    await db.close()
  }
})

test('promises are settled in that order', async function (t) {
  const db = new EskerLevel(newLocation())
  await db.open()
  const settled = []
  const calls = Array.from({ length: 2500 }, (_, i) =>
    db.put(String(i), 'v').then(() => settled.push(i))
  )
  await Promise.all(calls)
  t.same(
    settled,
    Array.from({ length: 2500 }, (_, i) => i)
  )
  await db.close()
})

test('one that fails harms no other', async function (t) {
  const db = new EskerLevel(newLocation(), { ttl: true })
  await db.open()
  const long = 'k'.repeat(2 ** 20 + 1)
  for (const sync of [false, true]) {
    const results = await Promise.allSettled([
      db.put('a', '1', { sync }),
      db.put(long, '1', { sync }),
      db.put('b', '2', { sync, ttl: 1e6 }),
      db.merge('c', 'no operator', { sync }),
      db.put('c', '3', { sync, ttl: -1 }),
      db.put('d', Symbol('no text'), {
        sync,
        valueEncoding: { name: 'own', format: 'utf8', encode: (x) => x, decode: (x) => x }
      }),
      db.del(long, { sync }),
      db.del('a', { sync }),
      db.put('e', '5', { sync })
    ])
    const refused = 'LEVEL_INVALID_ARGUMENT'
    t.same(
      results.map((result) => result.reason?.code ?? result.reason?.name ?? 'done'),
      ['done', refused, 'done', refused, refused, 'TypeError', refused, 'done', 'done'],
      `sync: ${sync}`
    )
    const errors = results
      .filter((result) => result.reason?.code === refused)
      .map((result) => result.reason)
    t.is(new Set(errors).size, 4, 'each has an error of its own')
    t.ok(errors.every((err) => err instanceof Error && err.retryable === false))
    t.same(await db.keys().all(), ['b', 'e'])
    await db.clear()
  }
  await db.close()
})

test('writes that are all refused', async function (t) {
  const location = newLocation()
  const writer = new EskerLevel(location)
  await writer.put('a', '1')
  await writer.close()
  const db = new EskerLevel(location, { readOnly: true })
  await db.open()
  for (const sync of [false, true]) {
    const results = await Promise.allSettled(
      Array.from({ length: 1500 }, (_, i) => db.put(String(i), 'v', { sync }))
    )
    t.ok(
      results.every((result) => result.reason?.code === 'LEVEL_READ_ONLY'),
      `sync: ${sync}`
    )
  }
  await db.close()
})

test('writes are done before a close that is called after them', async function (t) {
  const db = new EskerLevel(newLocation())
  for (const number of [1, 999, 1000, 1001, 5000]) {
    await db.open()
    await db.clear()
    const calls = Array.from({ length: number }, (_, i) =>
      db.put(String(i), 'v', { sync: i % 2 === 0 })
    )
    await db.close()
    const results = await Promise.allSettled(calls)
    t.ok(
      results.every((result) => result.status === 'fulfilled'),
      `${number} writes`
    )
    await db.open()
    t.is((await db.keys().all()).length, number)
    await db.close()
  }
})
