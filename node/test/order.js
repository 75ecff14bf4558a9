'use strict'

// All kinds of writes of one database take effect in the order of their calls, whichever of them
// are synced, and through whichever sublevel they go.

const test = require('tape')
const { EskerLevel } = require('..')
const { newLocation } = require('./directories')

const SYNCS = [
  [false, false],
  [false, true],
  [true, false],
  [true, true]
]

const HOUR = 3600 * 1000

// Every kind of write that gives 'k' a value, and every kind that takes it away.
const PUTS = {
  put: (db, value, sync) => db.put('k', value, { sync }),
  batch: (db, value, sync) => db.batch([{ type: 'put', key: 'k', value }], { sync }),
  'chained batch': (db, value, sync) => db.batch().put('k', value).write({ sync })
}

const DELETES = {
  del: (db, sync) => db.del('k', { sync }),
  batch: (db, sync) => db.batch([{ type: 'del', key: 'k' }], { sync }),
  'chained batch': (db, sync) => db.batch().del('k').write({ sync }),
  clear: (db) => db.clear(),
  'clear of a range': (db) => db.clear({ gte: 'k', lte: 'k' }),
  'clear of some keys': (db) => db.clear({ gte: 'k', limit: 1 })
}

// Leaves a call to the pool under way, and one behind it.
const occupy = async function (db) {
  const calls = Array.from({ length: 1500 }, (_, i) => db.put(`other ${i}`, 'v'))
  await new Promise(process.nextTick)
  return calls
}

const inEveryState = async function (db, name, check) {
  await check(`${name}, idle`)
  const calls = await occupy(db)
  await check(`${name}, behind others`)
  await Promise.all(calls)
}

test('a later write of any kind is there, and an earlier one is not', async function (t) {
  const db = new EskerLevel(newLocation())
  await db.open()

  for (const [firstSync, secondSync] of SYNCS) {
    const syncs = `sync ${firstSync}, ${secondSync}`
    for (const [firstName, first] of Object.entries(PUTS)) {
      for (const [secondName, second] of Object.entries(PUTS)) {
        await inEveryState(db, `${firstName}, ${secondName}, ${syncs}`, async function (name) {
          await Promise.all([first(db, '1', firstSync), second(db, '2', secondSync)])
          t.is(await db.get('k'), '2', name)
        })
      }

      for (const [secondName, second] of Object.entries(DELETES)) {
        await inEveryState(db, `${firstName}, ${secondName}, ${syncs}`, async function (name) {
          await Promise.all([first(db, '1', firstSync), second(db, secondSync)])
          t.is(await db.get('k'), undefined, name)
          await Promise.all([second(db, secondSync), first(db, '1', firstSync)])
          t.is(await db.get('k'), '1', `${name}, the other way round`)
        })
      }
    }
  }

  await db.close()
})

test('the last promise comes after the effects of all calls before it', async function (t) {
  const db = new EskerLevel(newLocation())
  await db.open()
  const calls = await occupy(db)
  calls.push(db.put('k', '1', { sync: true }), db.put('k', '2'))
  await db.batch([{ type: 'put', key: 'l', value: '3' }])
  t.same(await db.getMany(['k', 'l', 'other 1499']), ['2', '3', 'v'])
  await Promise.all(calls)
  await db.close()
})

test('merges and expiries come between puts', async function (t) {
  const db = new EskerLevel(newLocation(), { mergeOperator: 'stringappend:', ttl: true })
  await db.open()

  for (const [firstSync, secondSync] of SYNCS) {
    await inEveryState(db, `sync ${firstSync}, ${secondSync}`, async function (name) {
      const results = await Promise.all([
        db.del('k'),
        db.touch('k', HOUR),
        db.put('k', '1', { sync: firstSync }),
        db.touch('k', HOUR),
        db.merge('k', '2', { sync: secondSync }),
        db.persist('k'),
        db.batch([{ type: 'put', key: 'l', value: '1', ttl: HOUR }], { sync: firstSync }),
        db.merge('l', '2', { sync: secondSync }),
        db.put('m', '1', { sync: firstSync }),
        db.touch('m', HOUR),
        db.clear({ gte: 'n' }),
        db.persist('n')
      ])
      const [touchedBefore, touched, persisted] = [results[1], results[3], results[5]]
      t.same([touchedBefore, touched, persisted, results[11]], [false, true, true, false], name)
      t.same(await db.getMany(['k', 'l', 'm']), ['12', '12', '1'])
      t.is(await db.expiresAt('k'), Infinity, 'persisted after it was touched')
      t.ok((await db.expiresAt('l')) < Infinity, 'the merge kept the expiry of the batch')
      t.ok((await db.expiresAt('m')) < Infinity, 'touched after it was put')
    })
  }

  await db.close()
})

test('sublevels have the order of their database', async function (t) {
  const db = new EskerLevel(newLocation())
  const outer = db.sublevel('outer')
  const inner = outer.sublevel('inner')
  await Promise.all([db.open(), outer.open(), inner.open()])
  const name = inner.prefixKey('k', 'utf8')

  for (const [firstSync, secondSync] of SYNCS) {
    await inEveryState(db, `sync ${firstSync}, ${secondSync}`, async function (state) {
      const [first, second] = [{ sync: firstSync }, { sync: secondSync }]
      await Promise.all([
        inner.put('k', '1', first),
        db.batch([{ type: 'put', key: name, value: '2' }], second)
      ])
      t.is(await inner.get('k'), '2', state)
      await Promise.all([db.put(name, '3', first), inner.batch().put('k', '4').write(second)])
      t.is(await inner.get('k'), '4')
      await Promise.all([inner.put('k', '5', first), outer.clear()])
      t.is(await inner.get('k'), undefined)
      await Promise.all([
        outer.clear(),
        db.batch([{ type: 'put', sublevel: inner, key: 'k', value: '6' }], first),
        inner.del('k', second),
        inner.put('k', '7', first)
      ])
      t.is(await inner.get('k'), '7')
    })
  }

  await db.close()
})

test('calls that wait for the database to open have it too', async function (t) {
  const db = new EskerLevel(newLocation(), { mergeOperator: 'stringappend:' })
  await Promise.all([
    db.put('k', '1', { sync: true }),
    db.clear(),
    db.batch([{ type: 'put', key: 'k', value: '2' }]),
    db.merge('k', '3')
  ])
  t.is(await db.get('k'), '23')
  await db.close()
})

test('clear() of some keys meets those of the writes before it only', async function (t) {
  const db = new EskerLevel(newLocation())
  await db.open()
  const put = (key) => db.put(key, 'v')
  await Promise.all([put('b'), put('c'), db.clear({ limit: 2 }), put('a'), put('b')])
  t.same(await db.keys().all(), ['a', 'b'])
  const bound = Buffer.from('b')
  const cleared = db.clear({ gte: bound, limit: 5, keyEncoding: 'buffer' })
  bound[0] = 0
  await cleared
  t.same(await db.keys().all(), ['a'], 'bounds are copied when the call is made')
  await db.close()
})

test('random writes at once, of all kinds, end as if made one by one', async function (t) {
  for (let seed = 1; seed <= 20; seed++) {
    let state = seed
    const random = (most) => (state = (state * 48271) % 2147483647) % most
    const db = new EskerLevel(newLocation())
    await db.open()
    const expected = new Map()
    const calls = []

    for (let i = 0; i < 400; i++) {
      const [key, value, sync] = [`k${random(5)}`, String(i), random(8) === 0]
      const kind = random(12)
      if (kind === 0) {
        calls.push(db.clear({ gte: key }))
        for (const name of expected.keys()) if (name >= key) expected.delete(name)
      } else if (kind === 1) {
        calls.push(db.clear({ lte: key, limit: 10 }))
        for (const name of expected.keys()) if (name <= key) expected.delete(name)
      } else if (kind < 4) {
        calls.push(db.del(key, { sync }))
        expected.delete(key)
      } else if (kind < 6) {
        calls.push(db.batch([{ type: 'put', key, value }], { sync }))
        expected.set(key, value)
      } else if (kind < 8) {
        calls.push(db.batch().put(key, 'no').del(key).put(key, value).write({ sync }))
        expected.set(key, value)
      } else {
        calls.push(db.put(key, value, { sync }))
        expected.set(key, value)
      }
      if (random(20) === 0) await new Promise((resolve) => setImmediate(resolve))
    }

    await Promise.all(calls)
    t.same(await db.iterator().all(), [...expected].sort(), `seed ${seed}`)
    await db.close()
  }
})

test('a write that fails among others of all kinds harms none of them', async function (t) {
  const db = new EskerLevel(newLocation(), { ttl: true })
  await db.open()
  const long = 'k'.repeat(2 ** 20 + 1)
  const results = await Promise.allSettled([
    db.put('a', '1', { sync: true }),
    db.batch([
      { type: 'put', key: 'b', value: '1' },
      { type: 'put', key: long, value: '1' }
    ]),
    db.touch('a', 0),
    db.touch(long, HOUR),
    db.touch('a', HOUR),
    db.batch().put('c', '1').del(long).write({ sync: true }),
    db.persist('b'),
    db.batch([{ type: 'put', key: 'd', value: '1' }], { sync: true })
  ])
  const refused = 'LEVEL_INVALID_ARGUMENT'
  t.same(
    results.map((result) => result.reason?.code ?? result.value),
    [undefined, refused, refused, refused, true, refused, false, undefined]
  )
  t.same(await db.keys().all(), ['a', 'd'])
  await db.close()
})
