'use strict'

// Closed handles, calls beside a close, and two databases in one directory.

const test = require('tape')
const { EskerLevel } = require('..')
const binding = require('../lib/binding')
const { newLocation } = require('./directories')
const { codeOf } = require('./failures')

test('every call on a closed database fails', async function (t) {
  const db = new EskerLevel(newLocation(), { ttl: true, mergeOperator: 'max' })
  await db.open()
  await db.put('a', '1')
  const iterator = db.iterator()
  const snapshot = db.snapshot()
  const batch = db.batch().put('b', '2')
  const sublevel = db.sublevel('sub')
  await sublevel.open()
  await iterator.next()
  await db.close()
  await db.close()

  const closed = 'LEVEL_DATABASE_NOT_OPEN'
  for (const level of [db, sublevel]) {
    t.is(await codeOf(level.get('a')), closed)
    t.is(await codeOf(level.getMany(['a'])), closed)
    t.is(await codeOf(level.has('a')), closed)
    t.is(await codeOf(level.hasMany(['a'])), closed)
    t.is(await codeOf(level.put('a', '1')), closed)
    t.is(await codeOf(level.del('a')), closed)
    t.is(await codeOf(level.batch([{ type: 'del', key: 'a' }])), closed)
    t.is(await codeOf(level.clear()), closed)
    t.throws(() => level.getSync('a'), { code: closed })
    t.throws(() => level.batch(), { code: closed })
    t.throws(() => level.iterator(), { code: closed })
    t.throws(() => level.keys(), { code: closed })
    t.throws(() => level.values(), { code: closed })
    t.throws(() => level.snapshot(), { code: closed })
  }
  t.is(await codeOf(db.merge('a', '1')), closed)
  t.is(await codeOf(db.touch('a', 1)), closed)
  t.is(await codeOf(db.expireAt('a', 1)), closed)
  t.is(await codeOf(db.putIfAbsent('a', '1')), closed)
  t.is(await codeOf(db.compareAndSwap('a', '1', '2')), closed)
  t.is(await codeOf(db.mergeAndGet('a', '1')), closed)
  t.is(await codeOf(db.take('a')), closed)
  t.is(await codeOf(db.popFirst()), closed)
  t.is(await codeOf(db.count()), closed)
  t.is(await codeOf(db.ingest([])), closed)
  t.is(await codeOf(db.transaction()), closed)
  t.is(await codeOf(db.transact(() => {})), closed)
  t.is(await codeOf(db.flush()), closed)
  t.is(await codeOf(db.checkpoint('copy')), closed)
  t.is(await codeOf(db.verify()), closed)
  t.is(await codeOf(db.keyspaces()), closed)
  t.is(await codeOf(db.dropKeyspace('other')), closed)
  t.is(await codeOf(db.persist('a')), closed)
  t.is(await codeOf(db.expiresAt('a')), closed)
  t.is(await codeOf(db.approximateSize('a', 'b')), closed)
  t.is(await codeOf(db.approximateCount('a', 'b')), closed)
  t.is(await codeOf(db.setTtl(true)), closed)
  t.is(await codeOf(db.setMergeOperator('max')), closed)
  t.is(await codeOf(db.renameKeyspace('other')), closed)
  t.is(await codeOf(db.compactRange('a', 'b')), closed)
  t.throws(() => db.keyspaceId, { code: closed })
  t.throws(() => db.getProperty('esker.health.writable'), { code: closed })

  t.is(await codeOf(iterator.next()), 'LEVEL_ITERATOR_NOT_OPEN')
  t.is(await codeOf(iterator.nextv(1)), 'LEVEL_ITERATOR_NOT_OPEN')
  t.is(await codeOf(iterator.all()), 'LEVEL_ITERATOR_NOT_OPEN')
  iterator.seek('a')
  t.throws(() => batch.put('a', '1'), { code: 'LEVEL_BATCH_NOT_OPEN' })
  t.is(await codeOf(batch.write()), 'LEVEL_BATCH_NOT_OPEN')
  t.throws(() => snapshot.ref(), { code: 'LEVEL_SNAPSHOT_NOT_OPEN' })
  await Promise.all([iterator.close(), batch.close(), snapshot.close()])

  await db.open()
  t.is(await db.get('a'), '1', 'it can be opened again')
  t.is(await codeOf(iterator.next()), 'LEVEL_ITERATOR_NOT_OPEN', 'and its iterators stay closed')
  t.is(await codeOf(db.get('a', { snapshot })), 'LEVEL_SNAPSHOT_NOT_OPEN')
  await db.close()
})

test('the native half refuses what comes after a close by itself', async function (t) {
  const database = new binding.Database()
  const closed = 'LEVEL_DATABASE_NOT_OPEN'
  t.is(await codeOf(database.get('a', 0)), closed, 'before it is opened')
  t.is(await codeOf(database.close()), undefined)
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
  t.is(await codeOf(database.open(options)), 'LEVEL_INVALID_ARGUMENT', 'open twice')
  const writes = new binding.Writes()
  writes.put('a', '1')
  t.is(await database.writeAll(writes), undefined)
  t.is(await database.sync(), undefined)
  const iterator = database.iterator(undefined, undefined, 24, 0, 0)
  const snapshot = database.snapshot()
  t.same(await iterator.nextv(1, 0), ['a', '1', false])
  await database.close()
  t.is(await codeOf(iterator.nextv(1, 0)), closed, 'an iterator that outlives its database')
  t.is(await codeOf(database.get('a', 0, snapshot)), closed)
  t.is(await codeOf(database.writeAll(writes)), closed)
  t.is(await codeOf(database.sync()), closed)
  t.throws(() => database.getSync('a', 0), { code: closed })
  t.throws(() => database.iterator(undefined, undefined, 24, 0, 0), { code: closed })
  t.throws(() => database.snapshot(), { code: closed })
  await database.open(options)
  t.is(await codeOf(iterator.nextv(1, 0)), closed, 'also when that is open again')
  iterator.close()
  iterator.close()
  iterator.seek('a')
  snapshot.close()
  snapshot.close()
  t.is(await codeOf(database.get('a', 0, snapshot)), 'LEVEL_SNAPSHOT_NOT_OPEN')
  const other = database.iterator(undefined, undefined, 24, 0, 0)
  other.close()
  t.is(await codeOf(other.nextv(1, 0)), 'LEVEL_ITERATOR_NOT_OPEN')

  t.throws(() => database.get.call({}, 'a', 0), Error, 'a wrong `this`')
  t.throws(() => database.get(1, 0), Error)
  t.throws(() => database.get('a', 0, {}), Error, 'an object that is no snapshot')
  t.throws(() => database.get('a', 0, iterator), Error, 'another class of the native half')
  t.throws(() => database.writeAll({}), Error)
  t.throws(() => writes.clearKeys('a', 'b', 0, 1, snapshot), { code: 'LEVEL_SNAPSHOT_NOT_OPEN' })
  t.throws(() => database.open({}), Error)
  await database.close()
})

test('calls that were made before a close are done', async function (t) {
  const db = new EskerLevel(newLocation())
  for (let round = 0; round < 20; round++) {
    await db.open()
    const calls = []
    for (let i = 0; i < 50; i++) {
      calls.push(
        db.put(`${round} ${i}`, 'v'),
        db.get(`${round} ${i - 10}`),
        db.batch([{ type: 'put', key: `${round} b${i}`, value: 'v' }])
      )
      if (i % 10 === 0)
        calls.push(db.compactRange('', '\uffff'), db.put(`${round} s${i}`, 'v', { sync: true }))
    }
    await db.close()
    const results = await Promise.allSettled(calls)
    t.same(
      results.filter((result) => result.status === 'rejected'),
      [],
      `round ${round}`
    )
  }
  await db.open()
  t.is((await db.keys().all()).length, 20 * 105)
  await db.close()
})

test('iterators that are read while their database closes', async function (t) {
  const db = new EskerLevel(newLocation())
  await db.open()
  await db.batch(
    Array.from({ length: 5000 }, (_, i) => ({
      type: 'put',
      key: String(i),
      value: 'v'.repeat(100)
    }))
  )
  const reads = Promise.allSettled(
    Array.from({ length: 20 }, (_, i) => {
      return i % 2 === 0 ? db.iterator().all() : db.iterator().nextv(1000)
    })
  )
  const endless = codeOf(
    (async function () {
      for (let i = 0; ; i++) for await (const key of db.keys()) if (key === undefined) return
    })()
  )
  await db.close()
  for (const result of await reads) {
    const isRead =
      result.status === 'fulfilled'
        ? result.value.length > 0
        : result.reason.code === 'LEVEL_ITERATOR_NOT_OPEN'
    t.ok(isRead, result.status)
  }
  t.ok(['LEVEL_ITERATOR_NOT_OPEN', 'LEVEL_DATABASE_NOT_OPEN'].includes(await endless))
})

test('a directory can be open once', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location)
  await db.open()
  await db.put('a', '1')
  const second = new EskerLevel(location)
  for (let i = 0; i < 3; i++) {
    try {
      await second.open()
      t.fail('opened twice')
    } catch (err) {
      t.is(err.code, 'LEVEL_DATABASE_NOT_OPEN')
      t.is(err.cause.code, 'LEVEL_LOCKED')
      t.is(err.cause.retryable, true)
      t.ok(err.cause.message.includes(String(process.pid)), err.cause.message)
    }
  }
  t.is(await db.get('a'), '1', 'the first goes on')
  await db.close()
  await second.open()
  t.is(await second.get('a'), '1')
  await second.close()
})

test('many opens and closes of one directory at once', async function (t) {
  const location = newLocation()
  let opened = 0
  await Promise.all(
    Array.from({ length: 8 }, async function () {
      for (let i = 0; i < 10; i++) {
        const db = new EskerLevel(location)
        try {
          await db.open()
        } catch (err) {
          t.is(err.cause.code, 'LEVEL_LOCKED')
          continue
        }
        opened++
        await db.put('n', String(Number((await db.get('n')) ?? 0) + 1))
        await db.close()
      }
    })
  )
  const db = new EskerLevel(location)
  t.is(await db.get('n'), String(opened), 'each open database saw what those before it wrote')
  await db.close()
})
