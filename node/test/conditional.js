'use strict'

// Writes that depend on the value that a key has, counts, and what is loaded.

const test = require('tape')
const { EskerLevel } = require('..')
const { newLocation } = require('./directories')
const { failure, codeOf } = require('./failures')

test('putIfAbsent(), take()', async function (t) {
  const db = new EskerLevel(newLocation(), { ttl: true })
  t.is(await db.putIfAbsent('a', '1'), undefined, 'deferred until the database is open')
  t.is(await db.putIfAbsent('a', '2'), '1')
  t.is(await db.get('a'), '1')
  t.same(await db.putIfAbsent('a', '2', { valueEncoding: 'buffer' }), Buffer.from('1'))
  t.is(await db.putIfAbsent('a', { n: 2 }, { valueEncoding: 'json' }), 1)
  t.is(await db.putIfAbsent('b', '1', { ttl: 3600 * 1000, sync: true }), undefined)
  t.ok((await db.expiresAt('b')) < Infinity)
  t.is(await db.putIfAbsent('b', '2', { sync: true }), '1', 'the value comes behind the sync')
  t.is(await db.putIfAbsent('', ''), undefined, 'an empty key and value')
  t.is(await db.putIfAbsent('', '1'), '')

  t.is(await db.take('a', { sync: true }), '1')
  t.is(await db.take('a'), undefined)
  t.same(await db.take('b', { valueEncoding: 'view' }), new Uint8Array([0x31]))
  t.is(await db.take(''), '')
  t.same(await db.keys().all(), [])

  // One of many is the first.
  const puts = Array.from({ length: 50 }, (_, i) => db.putIfAbsent('k', String(i)))
  t.same(await Promise.all(puts), [undefined, ...Array(49).fill('0')])
  await db.close()
})

test('compareAndSwap()', async function (t) {
  const db = new EskerLevel(newLocation())
  const none = undefined
  t.same(await db.compareAndSwap('a', '1', '2'), { swapped: false, current: none })
  t.same(await db.compareAndSwap('a', none, '1'), { swapped: true, current: none })
  t.same(await db.compareAndSwap('a', none, '2'), { swapped: false, current: '1' })
  t.same(await db.compareAndSwap('a', '2', '3', { sync: true }), { swapped: false, current: '1' })
  t.same(await db.compareAndSwap('a', '1', '', { sync: true }), { swapped: true, current: none })
  t.same(
    await db.compareAndSwap('a', none, '3'),
    { swapped: false, current: '' },
    'empty is a value'
  )
  t.same(await db.compareAndSwap('a', '', none), { swapped: true, current: none })
  t.is(await db.has('a'), false)
  const json = { valueEncoding: 'json' }
  await db.put('a', { n: 1 }, json)
  t.same(await db.compareAndSwap('a', 0, 1, json), { swapped: false, current: { n: 1 } })
  t.same(await db.compareAndSwap('a', { n: 1 }, { n: 2 }, json), { swapped: true, current: none })
  t.same(await db.get('a', json), { n: 2 })

  // A counter of many programs.
  const increment = async function () {
    for (let old = await db.get('n'); ;) {
      const { swapped, current } = await db.compareAndSwap('n', old, String(Number(old ?? 0) + 1))
      if (swapped) return
      old = current
    }
  }
  await Promise.all(Array.from({ length: 20 }, increment))
  t.is(await db.get('n'), '20')
  await db.close()
})

test('mergeAndGet(), popFirst(), expireAt()', async function (t) {
  const db = new EskerLevel(newLocation(), { mergeOperator: 'max', ttl: true })
  t.is(await db.mergeAndGet('a', '5'), '5')
  t.is(await db.mergeAndGet('a', '3'), '5')
  t.is(await db.mergeAndGet('a', '7', { sync: true, ttl: 3600 * 1000 }), '7')
  t.ok((await db.expiresAt('a')) < Infinity)

  const soon = Date.now() + 3600 * 1000
  t.is(await db.expireAt('a', soon), true)
  t.is(await db.expiresAt('a'), soon)
  t.is(await db.expireAt('a', Infinity), true)
  t.is(await db.expiresAt('a'), Infinity)
  t.is(await db.expireAt('none', soon), false)
  t.is(await db.expireAt('a', 0), true)
  t.is(await db.has('a'), false, 'it has expired')
  for (const wrong of [-1, 0.5, NaN, -Infinity, 2 ** 60])
    t.is(await codeOf(db.expireAt('a', wrong)), 'LEVEL_INVALID_ARGUMENT')

  await db.batch([
    { type: 'put', key: 'b', value: '2' },
    { type: 'put', key: 'c', value: '3' }
  ])
  t.same(await db.popFirst(), ['b', '2'])
  t.same(await db.popFirst({ keyEncoding: 'buffer', valueEncoding: 'json', sync: true }), [
    Buffer.from('c'),
    3
  ])
  t.is(await db.popFirst(), undefined)
  const failed = await failure(
    db.putIfAbsent('j', '{', { sync: false }).then(() => {
      return db.take('j', { valueEncoding: 'json' })
    })
  )
  t.is(failed.code, 'LEVEL_DECODE_ERROR')
  await db.close()

  const plain = new EskerLevel(newLocation())
  t.is(await codeOf(plain.mergeAndGet('a', '1')), 'LEVEL_INVALID_ARGUMENT')
  t.is(await codeOf(plain.expireAt('a', soon)), 'LEVEL_INVALID_ARGUMENT')
  await plain.close()
})

test('they take their places among other writes', async function (t) {
  const db = new EskerLevel(newLocation(), { mergeOperator: 'max' })
  await db.open()
  const results = await Promise.all([
    db.put('a', '1'),
    db.putIfAbsent('a', '2'),
    db.compareAndSwap('a', '1', '3', { sync: true }),
    db.mergeAndGet('a', '9'),
    db.del('a'),
    db.take('a'),
    db.putIfAbsent('a', '4'),
    db.popFirst()
  ])
  const none = undefined
  const swap = { swapped: true, current: none }
  t.same(results, [none, '1', swap, '9', none, none, none, ['a', '4']])

  // A failure of one says nothing about those beside it.
  const settled = await Promise.allSettled([
    db.putIfAbsent('b', '1'),
    db.putIfAbsent('k'.repeat(1 << 21), '1'),
    db.putIfAbsent('b', '2')
  ])
  t.same(
    settled.map(({ value, reason }) => reason?.code ?? value),
    [none, 'LEVEL_INVALID_ARGUMENT', '1']
  )
  await db.close()
})

test('what was passed is copied', async function (t) {
  const db = new EskerLevel(newLocation(), { keyEncoding: 'view', valueEncoding: 'view' })
  await db.open()
  const [key, value] = [new Uint8Array([1]), new Uint8Array([2])]
  const calls = [
    db.putIfAbsent(key, value),
    db.compareAndSwap(key, value, new Uint8Array([3])),
    db.take(key)
  ]
  key[0] = value[0] = 9
  const [, { swapped }, taken] = await Promise.all(calls)
  t.is(swapped, true)
  t.same(taken, new Uint8Array([3]))
  await db.close()
})

test('count()', async function (t) {
  const db = new EskerLevel(newLocation())
  t.is(await db.count(), 0)
  await db.batch(
    Array.from({ length: 100 }, (_, i) => ({ type: 'put', key: String(i + 100), value: '' }))
  )
  const snapshot = db.snapshot()
  await db.clear({ gte: '150' })
  t.is(await db.count(), 50)
  t.is(await db.count({ snapshot }), 100)
  t.is(await db.count({ gt: '100', lte: '110' }), 10)
  t.is(await db.count({ gte: '100', lt: '110' }), 10)
  t.is(await db.count({ gte: 'z', lt: 'a' }), 0)
  t.is(await db.count({ gte: 120, keyEncoding: 'json' }), 30)
  await snapshot.close()
  t.is(await codeOf(db.count({ snapshot })), 'LEVEL_SNAPSHOT_NOT_OPEN')
  await db.close()
})

test('ingest()', async function (t) {
  const db = new EskerLevel(newLocation())
  const keyOf = (i) => String(i).padStart(6, '0')
  const pairs = function* (from, to) {
    for (let i = from; i < to; i++) yield [keyOf(i), `value ${i}`]
  }
  t.is(await db.ingest(pairs(0, 5000)), 5000)
  t.is(await db.count(), 5000)
  t.is(await db.get(keyOf(4999)), 'value 4999')
  t.is(await db.ingest([]), 0)
  const later = async function* () {
    yield* pairs(5000, 5010)
  }
  t.is(await db.ingest(later()), 10)
  t.is(await db.ingest(new Map([['z', '1']])), 1)
  t.is(await db.ingest([[1, 2]], { keyEncoding: 'json', valueEncoding: 'json' }), 1)
  t.is(await db.get('1'), '2')

  // All or nothing.
  const count = await db.count()
  t.is(
    await codeOf(
      db.ingest([
        ['n2', ''],
        ['n1', '']
      ])
    ),
    'LEVEL_INVALID_ARGUMENT'
  )
  t.is(
    await codeOf(
      db.ingest([
        ['n1', ''],
        ['n1', '']
      ])
    ),
    'LEVEL_INVALID_ARGUMENT'
  )
  const thrown = new Error('thrown by the program')
  const throwing = function* () {
    yield ['n1', '']
    throw thrown
  }
  t.is(await failure(db.ingest(throwing())), thrown)
  for (const wrong of [
    undefined,
    null,
    1,
    'ab',
    {},
    ['a'],
    [['a']],
    [['a', '1', '2']],
    [{}],
    [null]
  ])
    t.ok((await failure(db.ingest(wrong))) instanceof TypeError, JSON.stringify(wrong))
  t.is(await codeOf(db.ingest([[undefined, '1']])), 'LEVEL_INVALID_KEY')
  t.is(await codeOf(db.ingest([['n1', null]])), 'LEVEL_INVALID_VALUE')
  t.is(await db.count(), count)

  const closing = async function* () {
    yield ['n1', '']
    await db.close()
  }
  t.is(await codeOf(db.ingest(closing())), 'LEVEL_DATABASE_NOT_OPEN')
})
