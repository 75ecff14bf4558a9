'use strict'

// Transactions.

const test = require('tape')
const { EskerLevel } = require('..')
const binding = require('../lib/binding')
const { newLocation } = require('./directories')
const { failure, codeOf } = require('./failures')

const ENDED = 'LEVEL_TRANSACTION_NOT_OPEN'

const all = async function (entries) {
  const found = []
  for await (const entry of entries) found.push(entry)
  return found
}

test('reads and writes of a transaction', async function (t) {
  const db = new EskerLevel(newLocation(), { mergeOperator: 'max', ttl: true })
  const hour = 3600 * 1000
  await db.batch([
    { type: 'put', key: 'a', value: '1' },
    { type: 'put', key: 'b', value: '2', ttl: hour },
    { type: 'put', key: 'c', value: '3' }
  ])
  const transaction = await db.transaction()
  t.is(typeof transaction.sequence, 'number')
  await db.put('a', 'later')
  t.is(await transaction.get('b'), '2')
  t.is(await transaction.get('none'), undefined)
  t.same(await transaction.get('b', { valueEncoding: 'buffer' }), Buffer.from('2'))
  t.same(await transaction.getMany(['b', 'none', 'c']), ['2', undefined, '3'])
  t.is(await transaction.has('b'), true)
  t.is(await transaction.has('none'), false)
  t.is(await transaction.expiresAt('b'), await db.expiresAt('b'))
  t.is(await transaction.expiresAt('c'), Infinity)
  t.is(await transaction.expiresAt('none'), undefined)
  t.is(await transaction.count(), 3)
  t.is(await transaction.count({ gt: 'a', lte: 'b' }), 1)

  await transaction.put('d', '4', { ttl: hour })
  await transaction.merge('c', '9')
  await transaction.merge('m', '5', { ttl: hour })
  await transaction.del('b')
  t.is(await transaction.get('c'), '9', 'its own writes')
  t.is(await transaction.has('b'), false)
  t.is(await codeOf(transaction.expiresAt('d')), 'LEVEL_INVALID_ARGUMENT', 'known at the commit')
  await transaction.touch('c', hour)
  await transaction.persist('d')
  await transaction.expireAt('m', Date.now() + 2 * hour)
  await transaction.expireAt('d', Infinity)
  t.same(await transaction.popFirst(), ['a', '1'], 'as of its beginning')
  t.is(await db.has('d'), false, 'nothing before the commit')
  t.is(await codeOf(transaction.commit()), 'LEVEL_CONFLICT', 'the key that it took was written')
  t.is(await db.get('a'), 'later')
  t.is(await db.has('d'), false)
  await db.close()
})

test('commits', async function (t) {
  const db = new EskerLevel(newLocation(), { ttl: true })
  await db.batch(['a', 'b', 'c', 'd'].map((key) => ({ type: 'put', key, value: key })))
  const transaction = await db.transaction()
  await transaction.clear({ gte: 'b', lt: 'd' })
  await transaction.put('e', 'e', { ttl: 3600 * 1000 })
  await transaction.persist('d')
  t.is(await transaction.commit({ sync: true }), undefined)
  t.same(await db.keys().all(), ['a', 'd', 'e'])
  t.ok((await db.expiresAt('e')) < Infinity)
  t.is(await codeOf(transaction.commit()), ENDED)
  t.is(await codeOf(transaction.rollback()), ENDED)
  t.is(await codeOf(transaction.get('a')), ENDED)
  await transaction.close()

  const empty = await db.transaction()
  await empty.commit()
  const rolledBack = await db.transaction()
  await rolledBack.clear()
  await rolledBack.rollback()
  t.is(await codeOf(rolledBack.put('a', '1')), ENDED)
  t.is(await db.count(), 3)
  const closed = await db.transaction()
  await closed.put('z', '1')
  await Promise.all([closed.close(), closed.close()])
  await closed.close()
  t.is(await db.has('z'), false)
  await db.close()
})

test('conflicts', async function (t) {
  const db = new EskerLevel(newLocation())
  await db.put('a', '1')
  const reads = {
    get: (transaction) => transaction.get('a'),
    getMany: (transaction) => transaction.getMany(['z', 'a']),
    has: (transaction) => transaction.has('a'),
    count: (transaction) => transaction.count({ gte: 'a' }),
    entries: (transaction) => all(transaction.entries()),
    expiresAt: (transaction) => transaction.expiresAt('a'),
    merge: (transaction) => transaction.put('a', '2')
  }
  for (const [name, read] of Object.entries(reads)) {
    const transaction = await db.transaction()
    await read(transaction)
    await transaction.put(`by ${name}`, '')
    await db.put('a', '1')
    const err = await failure(transaction.commit())
    t.is(err.code, 'LEVEL_CONFLICT', name)
    t.is(err.retryable, true)
    t.is(await db.has(`by ${name}`), false)
    t.is(await codeOf(transaction.get('a')), ENDED, 'it has ended')
  }
  const other = await db.transaction()
  await other.get('a')
  await db.put('b', '1')
  await other.put('c', '1')
  await other.commit()
  t.is(await db.get('c'), '1', 'other keys are none of its business')
  await db.close()
})

test('entries()', async function (t) {
  const db = new EskerLevel(newLocation(), { keyEncoding: 'buffer' })
  const keyOf = (i) => Buffer.from([0xff, i >> 8, i & 0xff])
  await db.batch(
    Array.from({ length: 3000 }, (_, i) => ({ type: 'put', key: keyOf(i), value: String(i) }))
  )
  const transaction = await db.transaction()
  const numbers = async (options) =>
    (await all(transaction.entries(options))).map(([, value]) => Number(value))
  const upTo = (from, to) => Array.from({ length: to - from }, (_, i) => from + i)
  t.same(await numbers(), upTo(0, 3000), 'in several reads')
  t.same(await numbers({ reverse: true }), upTo(0, 3000).reverse())
  t.same(await numbers({ gte: keyOf(5), lt: keyOf(9) }), upTo(5, 9))
  t.same(await numbers({ gt: keyOf(5), lte: keyOf(9), reverse: true }), [9, 8, 7, 6])
  t.same(await numbers({ limit: 1500 }), upTo(0, 1500))
  t.same(await numbers({ limit: 0 }), [])
  t.same(await numbers({ gte: keyOf(9), lt: keyOf(5) }), [])
  // Keys that are no text go on where they are.
  t.is((await numbers({ keyEncoding: 'utf8' })).length, 3000)

  let seen = 0
  for await (const [key] of transaction.entries()) {
    await transaction.del(key)
    if (++seen === 2000) break
  }
  t.is(await transaction.count(), 1000, 'the loop may write')
  const large = Buffer.alloc(1 << 20)
  await transaction.put(keyOf(0), large, { valueEncoding: 'buffer' })
  const [[, value]] = await all(transaction.entries({ limit: 1, valueEncoding: 'view' }))
  t.is(value.byteLength, large.length)
  await transaction.commit()
  t.is(await db.count(), 1001)

  const ended = transaction.entries()
  t.is(await codeOf(ended.next()), ENDED)
  const encoding = {
    name: 'failing',
    format: 'utf8',
    encode: (data) => data,
    decode: () => JSON.parse('{')
  }
  const failing = await db.transaction()
  t.is(await codeOf(failing.entries({ valueEncoding: encoding }).next()), 'LEVEL_DECODE_ERROR')
  t.is(await codeOf(failing.get(keyOf(2500), { valueEncoding: encoding })), 'LEVEL_DECODE_ERROR')
  await failing.rollback()
  await db.close()
})

test('calls are made in the order of the program', async function (t) {
  const db = new EskerLevel(newLocation(), { keyEncoding: 'view', valueEncoding: 'view' })
  const transaction = await db.transaction()
  const [key, value] = [new Uint8Array([1]), new Uint8Array([0])]
  const calls = []
  for (let i = 1; i <= 50; i++) {
    value[0] = i
    calls.push(transaction.put(key, value), transaction.get(key))
  }
  key[0] = value[0] = 99
  calls.push(transaction.commit())
  const late = codeOf(transaction.get(key))
  const results = await Promise.all(calls)
  t.same(
    results.filter((result) => result !== undefined).map((result) => result[0]),
    Array.from({ length: 50 }, (_, i) => i + 1),
    'what was passed is copied'
  )
  t.is(await late, ENDED)
  t.same(await db.get(new Uint8Array([1])), new Uint8Array([50]))
  t.is(await db.has(new Uint8Array([99])), false)

  // One that takes its time keeps those behind it.
  const many = function* () {
    for (let i = 0; i < 200000; i++) yield [Buffer.from(`many ${String(i).padStart(6, '0')}`), value]
  }
  await db.ingest(many(), { keyEncoding: 'buffer' })
  const long = await db.transaction()
  const counted = [long.count(), long.put(key, value), long.count(), long.has(key)]
  t.same(await Promise.all(counted), [200001, undefined, 200002, true])
  await long.rollback()

  // A failure ends nothing.
  const other = await db.transaction()
  const failed = codeOf(other.put(key, value, { ttl: 1 }))
  const done = other.put(key, value)
  t.is(await failed, 'LEVEL_INVALID_ARGUMENT')
  await done
  // Commits take their places among the writes of the database.
  await Promise.all([db.put(new Uint8Array([5]), value), other.commit(), db.del(key)])
  t.is(await db.has(key), false)
  await db.close()
})

test('transact()', async function (t) {
  const db = new EskerLevel(newLocation())
  await db.put('n', '0')
  const add = async function (transaction) {
    const n = Number(await transaction.get('n')) + 1
    await transaction.put('n', String(n))
    return n
  }
  t.is(await db.transact(add), 1)
  const sums = await Promise.all(
    Array.from({ length: 10 }, () => db.transact(add, { attempts: 1000, sync: true }))
  )
  t.same(
    sums.sort((a, b) => a - b),
    [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
  )
  t.is(await db.get('n'), '11')

  let runs = 0
  const meetsAnother = async function (transaction) {
    runs++
    await add(transaction)
    await db.put('n', 'other')
  }
  t.is(await codeOf(db.transact(meetsAnother, { attempts: 3 })), 'LEVEL_CONFLICT')
  t.is(runs, 3)
  runs = 0
  t.is(await codeOf(db.transact(meetsAnother)), 'LEVEL_CONFLICT')
  t.is(runs, 10)

  // An error of the function, also one that looks like a conflict, ends it.
  runs = 0
  let kept
  for (const thrown of [
    new Error('thrown'),
    Object.assign(new Error(), { code: 'LEVEL_CONFLICT' }),
    undefined
  ]) {
    const fails = db.transact(async function (transaction) {
      runs++
      kept = transaction
      await transaction.put('never', '1')
      throw thrown
    })
    t.is(
      await fails.then(
        () => 'done',
        (err) => err
      ),
      thrown
    )
    t.is(await codeOf(kept.get('n')), ENDED)
  }
  t.is(runs, 3)
  t.is(await db.has('never'), false)
  t.is(await db.transact(() => 7), 7, 'a function that is not asynchronous')
  t.is(await codeOf(db.transact((transaction) => transaction.commit())), ENDED)
  for (const wrong of [undefined, null, 1, {}])
    t.ok((await failure(db.transact(wrong))) instanceof TypeError)
  t.ok((await failure(db.transact(add, { attempts: '1' }))) instanceof TypeError)
  t.ok((await failure(db.transact(add, { attempts: 0.5 }))) instanceof RangeError)
  await db.close()
})

test('wrong arguments', async function (t) {
  const db = new EskerLevel(newLocation(), { ttl: true, mergeOperator: 'max' })
  const transaction = await db.transaction()
  for (const call of [
    'get',
    'has',
    'expiresAt',
    'del',
    'persist',
    'put',
    'merge',
    'touch',
    'expireAt'
  ])
    for (const key of [undefined, null])
      t.is(await codeOf(transaction[call](key, 1)), 'LEVEL_INVALID_KEY', call)
  for (const value of [undefined, null]) {
    t.is(await codeOf(transaction.put('a', value)), 'LEVEL_INVALID_VALUE')
    t.is(await codeOf(transaction.merge('a', value)), 'LEVEL_INVALID_VALUE')
  }
  t.is(await codeOf(transaction.getMany(['a', undefined])), 'LEVEL_INVALID_KEY')
  for (const keys of [undefined, null, 'a', {}])
    t.ok((await failure(transaction.getMany(keys))) instanceof TypeError)
  for (const ttl of ['1', {}, true, 1n]) {
    t.ok((await failure(transaction.put('a', '1', { ttl }))) instanceof TypeError)
    t.ok((await failure(transaction.merge('a', '1', { ttl }))) instanceof TypeError)
    t.ok((await failure(transaction.touch('a', ttl))) instanceof TypeError)
    t.ok((await failure(transaction.expireAt('a', ttl))) instanceof TypeError)
  }
  for (const ttl of [0, -1, 0.5, NaN, Infinity, 2 ** 60]) {
    t.is(await codeOf(transaction.put('a', '1', { ttl })), 'LEVEL_INVALID_ARGUMENT')
    t.is(await codeOf(transaction.merge('a', '1', { ttl })), 'LEVEL_INVALID_ARGUMENT')
    t.is(await codeOf(transaction.touch('a', ttl)), 'LEVEL_INVALID_ARGUMENT')
  }
  t.is(await codeOf(transaction.expireAt('a', -1)), 'LEVEL_INVALID_ARGUMENT')
  const encoding = { name: 'wrong', format: 'utf8', encode: () => 1, decode: (data) => data }
  t.ok((await failure(transaction.put('a', 'b', { keyEncoding: encoding }))) instanceof TypeError)
  t.ok((await failure(transaction.put('a', 'b', { valueEncoding: encoding }))) instanceof TypeError)
  t.ok((await failure(transaction.get('a', { keyEncoding: encoding }))) instanceof TypeError)
  t.ok((await failure(transaction.count({ gte: 'a', keyEncoding: encoding }))) instanceof TypeError)
  t.is(await transaction.count(), 0, 'nothing was written')
  await transaction.commit()
  await db.close()
})

test('transactions end with their database', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location)
  await db.put('a', '1')
  const transaction = await db.transaction()
  const { sequence } = transaction
  await transaction.put('b', '1')
  const entries = transaction.entries()
  await entries.next()
  const committed = await db.transaction()
  await committed.put('c', '1')
  const commit = committed.commit({ sync: true })
  await db.close()
  await commit
  for (const call of [
    transaction.get('a'),
    transaction.getMany(['a']),
    transaction.has('a'),
    transaction.expiresAt('a'),
    transaction.count(),
    transaction.put('a', '1'),
    transaction.del('a'),
    transaction.merge('a', '1'),
    transaction.clear(),
    transaction.popFirst(),
    transaction.touch('a', 1),
    transaction.expireAt('a', 1),
    transaction.persist('a'),
    transaction.commit(),
    transaction.rollback()
  ])
    t.is(await codeOf(call), ENDED)
  t.is(transaction.sequence, sequence)
  await transaction.close()
  t.is(await codeOf(db.transaction()), 'LEVEL_DATABASE_NOT_OPEN')
  t.is(await codeOf(db.transact(() => {})), 'LEVEL_DATABASE_NOT_OPEN')
  await db.open()
  t.same(await db.keys().all(), ['a', 'c'], 'a commit that was made before the close is done')
  t.is(await codeOf(transaction.get('a')), ENDED)

  const opening = db.transaction().then(
    (transaction) => codeOf(transaction.get('a')),
    (err) => err.code
  )
  await db.close()
  const end = await opening
  t.ok([ENDED, 'LEVEL_DATABASE_NOT_OPEN'].includes(end), end)
  const reader = new EskerLevel(location, { readOnly: true })
  await reader.open()
  const reading = await reader.transaction()
  t.is(await reading.get('a'), '1')
  await reading.put('a', '2')
  t.is(await codeOf(reading.commit()), 'LEVEL_READ_ONLY')
  await reader.close()
})

test('the native half refuses what cannot be by itself', async function (t) {
  const database = new binding.Database()
  t.is(await codeOf(database.transaction()), 'LEVEL_DATABASE_NOT_OPEN')
  const options = {
    location: newLocation(),
    createIfMissing: true,
    errorIfExists: false,
    readOnly: false,
    follower: false,
    keyspace: 'default',
    ttl: false
  }
  await database.open(options)
  const transaction = await database.transaction()
  await transaction.put('a', '1')
  const writes = new binding.Writes()
  t.throws(() => writes.commit({}), Error, 'an object that is no transaction')
  t.throws(() => writes.commit(database), Error, 'another class of the native half')
  writes.commit(transaction)
  t.throws(() => writes.commit(transaction), { code: ENDED })
  t.is(await codeOf(transaction.get('a', 0)), ENDED)
  t.is(await database.writeAll(writes), undefined)
  t.is(database.getSync('a', 0), '1')
  const other = await database.transaction()
  await database.close()
  t.is(await codeOf(other.get('a', 0)), 'LEVEL_DATABASE_NOT_OPEN', 'it outlives its database')
  await other.close()
  await other.close()
})

if (typeof Symbol.asyncDispose === 'symbol') {
  test('disposal', async function (t) {
    const db = new EskerLevel(newLocation())
    const transaction = await db.transaction()
    await transaction.put('a', '1')
    await transaction[Symbol.asyncDispose]()
    t.is(await codeOf(transaction.commit()), ENDED)
    await db.close()
  })
}
