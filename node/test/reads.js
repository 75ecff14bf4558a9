'use strict'

// Reads that are made together: each has its own answer.

// One thread makes the calls in the order in which they enter the pool.
process.env.UV_THREADPOOL_SIZE = '1'

const test = require('tape')
const { EskerLevel } = require('..')
const { newLocation } = require('./directories')

const opened = async function (options) {
  const db = new EskerLevel(newLocation(), options)
  await db.open()
  return db
}

const settled = (promises) =>
  Promise.allSettled(promises).then((results) =>
    results.map(({ value, reason }) => (reason === undefined ? value : reason.code))
  )

test('gets and questions of one turn', async function (t) {
  const db = await opened()
  const count = 350
  const keyOf = (i) => `key ${i}`
  await db.batch(
    Array.from({ length: count }, (_, i) => i)
      .filter((i) => i % 3 !== 0)
      .map((i) => ({ type: 'put', key: keyOf(i), value: `value ${i}` }))
  )
  const reads = []
  const expected = []
  for (let i = 0; i < count; i++) {
    const isThere = i % 3 !== 0
    const value = `value ${i}`
    reads.push(db.get(keyOf(i)), db.has(keyOf(i)))
    expected.push(isThere ? value : undefined, isThere)
    reads.push(db.get(keyOf(i), { valueEncoding: 'buffer' }))
    expected.push(isThere ? Buffer.from(value) : undefined)
    reads.push(db.get(keyOf(i), { valueEncoding: 'view' }))
    expected.push(isThere ? new Uint8Array(Buffer.from(value)) : undefined)
  }
  t.same(await Promise.all(reads), expected)
  await db.close()
})

test('gets of one turn at different moments', async function (t) {
  const db = await opened()
  await db.put('a', 'before')
  const snapshot = db.snapshot()
  await db.put('a', 'after')
  const reads = [undefined, snapshot, undefined, snapshot].map((snapshot) =>
    db.get('a', { snapshot })
  )
  t.same(await Promise.all(reads), ['after', 'before', 'after', 'before'])
  await snapshot.close()
  await db.close()
})

test('keys may be changed once they are passed', async function (t) {
  const db = await opened({ keyEncoding: 'buffer' })
  await db.put(Buffer.from('a'), '1')
  const key = Buffer.from('a')
  const reads = [db.get(key), db.get(key), db.has(key)]
  key[0] = 0x7a
  t.same(await Promise.all(reads), ['1', '1', true])
  await db.close()
})

test('a read that fails is the only one', async function (t) {
  const db = await opened({ mergeOperator: 'uint64add', valueEncoding: 'buffer' })
  const one = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0])
  await db.put('a', one)
  await db.put('text', Buffer.from('no number'))
  await db.merge('text', one)
  const failed = 'LEVEL_MERGE_FAILED'
  const reads = ['a', 'text', 'a', 'text', 'b'].map((key) => db.get(key))
  reads.push(db.has('text'), db.has('a'), db.get('a'))
  const answers = await settled(reads)
  t.same(answers.slice(0, 5), [one, failed, one, failed, undefined])
  t.same(answers.slice(6), [true, one])
  await db.close()
})

test('a key that is refused is the only one', async function (t) {
  const db = await opened()
  await db.put('a', '1')
  const wrong = {
    name: 'wrong',
    format: 'buffer',
    encode: (key) => (key === 'wrong' ? 7 : key),
    decode: String
  }
  const reads = ['a', 'wrong', 'a', 'wrong', 'a'].map((key) => db.get(key, { keyEncoding: wrong }))
  const results = await Promise.allSettled(reads)
  t.same(
    results.map(({ value, reason }) => value ?? reason.name),
    ['1', 'TypeError', '1', 'TypeError', '1']
  )
  await db.close()
})

test('what was called before a close succeeds', async function (t) {
  const db = await opened()
  await db.put('a', '1')
  const reads = Array.from({ length: 250 }, (_, i) => (i % 2 === 0 ? db.get('a') : db.has('a')))
  const closing = db.close()
  const late = settled([db.get('a'), db.has('a')])
  t.same(
    await Promise.all(reads),
    reads.map((_, i) => (i % 2 === 0 ? '1' : true))
  )
  await closing
  t.same(await late, ['LEVEL_DATABASE_NOT_OPEN', 'LEVEL_DATABASE_NOT_OPEN'])
})

test('reads see the writes whose promises were settled before', async function (t) {
  const db = await opened()
  for (let i = 0; i < 200; i++) {
    await db.put('a', String(i))
    const seen = await Promise.all([db.get('a'), db.get('a'), db.get('a')])
    if (seen.some((value) => value !== String(i))) return t.fail(`${seen} behind ${i}`)
  }
  t.pass('always')
  await db.close()
})

test('a read that is called before a write goes before it', async function (t) {
  // A tick comes before a microtask in a timer, and not behind an `await`.
  const db = await opened()
  const wrong = []
  for (let i = 0; i < 50; i++) {
    await db.put('a', `before ${i}`)
    const seen = await new Promise((resolve) =>
      setTimeout(() => resolve(Promise.all([db.get('x'), db.get('a'), db.put('a', 'after')])), 0)
    )
    if (seen[1] !== `before ${i}`) wrong.push(seen[1])
  }
  t.same(wrong, [])
  await db.close()
})
