'use strict'

// The change feed, and watches.

const test = require('tape')
const { EskerLevel } = require('..')
const binding = require('../lib/binding')
const { rangeOf } = require('../lib/range')
const { newLocation } = require('./directories')
const { failure, codeOf } = require('./failures')

const KEPT = { keepChanges: { bytes: 1 << 20 } }
const NATIVE_OPTIONS = {
  createIfMissing: true,
  errorIfExists: false,
  readOnly: false,
  follower: false,
  keyspace: 'default',
  ttl: false,
  keepChangesBytes: 1 << 20
}

/** What there is to read for now. */
const read = async function (changes) {
  const batches = []
  for (let batch = await changes.next(); batch !== undefined; batch = await changes.next())
    batches.push(batch)
  return batches
}

test('all kinds of changes', async function (t) {
  const db = new EskerLevel(newLocation(), { ...KEPT, mergeOperator: 'max', ttl: true })
  const changes = await db.changes()
  const start = changes.position
  t.ok(start > 0, 'where what is kept begins')
  t.is(await changes.next(), undefined)
  t.is(changes.position, start)
  await db.put('a', '1')
  await db.put('t', '2', { ttl: 3600 * 1000 })
  await db.batch([
    { type: 'put', key: 'b', value: '3' },
    { type: 'del', key: 't' }
  ])
  await db.merge('m', '4')
  await db.merge('m', '5')
  await db.clear({ gte: 'a', lt: 'm' })
  await db.clear()
  await db.setTtl(1000)
  await db.renameKeyspace('people')
  await db.setTtl(true)
  await db.setMergeOperator('min')
  const expiry = (change) => change.expiresAt

  const batches = await read(changes)
  t.same(
    batches.map((batch) => batch.length),
    [1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1]
  )
  const found = batches.flat()
  t.is(found[0].sequence, start)
  const id = found[0].keyspaceId
  t.is(db.keyspaceId, id)
  t.ok(found.every((change) => change.keyspaceId === id))
  t.ok(found.every((change, i) => i === 0 || change.sequence > found[i - 1].sequence))
  t.is(changes.position, found.at(-1).sequence + 1)
  t.is(expiry(found[0]), Infinity)
  t.ok(Number.isInteger(expiry(found[1])) && expiry(found[1]) > 1.7e12)

  const own = ({ sequence, keyspaceId, expiresAt, ...change }) => change
  const names = { keyspace: 'default' }
  const people = { keyspace: 'people' }
  t.same(found.map(own), [
    { ...names, type: 'put', key: 'a', value: '1' },
    { ...names, type: 'put', key: 't', value: '2' },
    { ...names, type: 'put', key: 'b', value: '3' },
    { ...names, type: 'del', key: 't' },
    { ...names, type: 'merge', key: 'm', operand: '4', isFirst: true },
    { ...names, type: 'merge', key: 'm', operand: '5', isFirst: false },
    { ...names, type: 'clear', gte: 'a', lt: 'm' },
    { ...names, type: 'clear' },
    { ...names, type: 'alterKeyspace', formerName: 'default', mergeOperator: 'max', ttl: 1000 },
    { ...people, type: 'alterKeyspace', formerName: 'default', mergeOperator: 'max', ttl: 1000 },
    { ...people, type: 'alterKeyspace', formerName: 'people', mergeOperator: 'max', ttl: true },
    { ...people, type: 'alterKeyspace', formerName: 'people', mergeOperator: 'min', ttl: true }
  ])

  const settings = (change) => changes.keyspaceSettings(id, change.sequence)
  const before = { comparator: 'bytewise', mergeOperator: 'max' }
  t.same(await settings(found[0]), { ...before, name: 'default', ttl: true })
  t.same(await settings(found[8]), { ...before, name: 'default', ttl: 1000 })
  t.same(await settings(found[9]), { ...before, name: 'people', ttl: 1000 })
  t.same(await settings(found[11]), { ...before, name: 'people', ttl: true, mergeOperator: 'min' })
  t.is(await changes.keyspaceSettings(id + 1000, 1), undefined)

  // From a number on, and more for those that have read all.
  const late = await db.changes({ from: found[10].sequence })
  t.is(late.position, found[10].sequence)
  t.same((await read(late)).flat(), found.slice(10))
  await db.put('z', '9')
  t.same((await read(changes)).flat().map(own), [{ ...people, type: 'put', key: 'z', value: '9' }])
  await db.close()
})

test('the number to go on from', async function (t) {
  const db = new EskerLevel(newLocation(), KEPT)
  await db.batch([
    { type: 'put', key: 'a', value: '1' },
    { type: 'put', key: 'b', value: '2' }
  ])
  await db.put('c', '3')
  const changes = await db.changes()
  const start = changes.position
  const [first] = await read(await db.changes())
  t.is(start, first[0].sequence, 'before anything was read')
  t.same(await changes.next(), first)
  t.is(changes.position, start + 2, 'with more read ahead')
  await changes.next()
  t.is(changes.position, start + 3, 'at the end')

  // What this reader holds back is not passed.
  const durable = await db.changes({ onlyDurable: true })
  t.is(await durable.next(), undefined)
  t.is(durable.position, start)
  await db.put('d', '4', { sync: true })
  await read(durable)
  t.is(durable.position, start + 4)

  // What was passed is not read again.
  const again = await db.changes({ from: durable.position })
  t.is(again.position, durable.position)
  t.is(await again.next(), undefined)
  t.is(again.position, durable.position)
  await db.close()

  // Keeping begins anew, behind what was given up.
  await db.open({ keepChanges: { bytes: 0 } })
  const kept = await db.changes()
  t.ok(kept.position >= start)
  t.is((await db.changes({ from: kept.position })).position, kept.position)
  await db.close()
})

test('what belongs to no keyspace of the program', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location, KEPT)
  const sublevel = db.sublevel('sub')
  await sublevel.put('a', '1')
  const changes = await db.changes()
  t.is((await changes.next())[0].key, sublevel.prefixKey('a', 'utf8'))
  await db.close()
  const other = new EskerLevel(location, { ...KEPT, keyspace: 'other' })
  await other.put('b', '2')
  const all = await other.changes()
  t.same(
    (await read(all)).flat().map((change) => change.keyspace),
    ['default', 'other']
  )
  await other.close()
})

test('encodings of changes', async function (t) {
  const db = new EskerLevel(newLocation(), { ...KEPT, valueEncoding: 'json' })
  await db.put('a', { n: 1 })
  await db.put('b', 'no json', { valueEncoding: 'utf8' })
  await db.clear({ gte: 'x', lt: 'y' })
  const changes = await db.changes()
  t.same((await changes.next())[0].value, { n: 1 })
  const position = changes.position
  for (let i = 0; i < 2; i++) {
    const err = await failure(changes.next())
    t.is(err.code, 'LEVEL_DECODE_ERROR')
    t.ok(err.cause instanceof SyntaxError)
  }
  t.is(changes.position, position, 'it is not read')
  const rest = await db.changes({ from: position, keyEncoding: 'buffer', valueEncoding: 'view' })
  const [put] = await rest.next()
  t.same([put.key, Buffer.from(put.value)], [Buffer.from('b'), Buffer.from('no json')])
  t.ok(Buffer.isBuffer(put.key) && put.value instanceof Uint8Array && !Buffer.isBuffer(put.value))
  t.same((await rest.next())[0].gte, Buffer.from('x'))
  await db.close()
})

test('many changes, and large ones', async function (t) {
  const db = new EskerLevel(newLocation(), { keepChanges: { bytes: 1 << 28 } })
  await db.open()
  const large = 'v'.repeat(200000)
  const puts = Array.from({ length: 5000 }, (_, i) => db.put(`k${i}`, i % 100 === 0 ? large : 'v'))
  await Promise.all(puts)
  const changes = await db.changes()
  const batches = await read(changes)
  t.is(batches.length, 5000)
  t.ok(batches.every(([change], i) => change.key === `k${i}`))
  t.ok(batches.every(([change], i) => change.value.length === (i % 100 === 0 ? 200000 : 1)))
  await db.close()
})

test('a read ends where its bytes are reached, those of ranges too', async function (t) {
  const database = new binding.Database()
  await database.open({ ...NATIVE_OPTIONS, location: newLocation() })
  const { lower, upper, flags } = rangeOf({ gte: 'a'.repeat(100), lt: 'b'.repeat(100) })
  const writes = new binding.Writes()
  for (let i = 0; i < 3; i++) writes.clear(lower, upper, flags)
  t.same(await database.writeAll(writes), undefined)
  for (const [bytes, count] of [
    [1, 1],
    [200, 1],
    [201, 2],
    [400, 2],
    [401, 3]
  ]) {
    const changes = await database.changes(0, false, 0, 0)
    t.is((await changes.nextv(10, bytes)).batches.length, count, `${bytes} bytes`)
    changes.close()
  }
  await database.close()
})

test('in step with a snapshot, in a loop', async function (t) {
  const db = new EskerLevel(newLocation(), KEPT)
  await db.put('a', '1')
  const before = await db.changes()
  const snapshot = db.snapshot()
  await db.put('a', '2')
  const copy = new Map(await db.iterator({ snapshot }).all())
  t.same([...copy], [['a', '1']])
  await before.next()
  t.is(before.position, snapshot.sequence + 1, 'the one that the snapshot has is read')
  const from = before.position
  await before.close()
  t.is(before.position, from, 'it stays')
  await snapshot.close()
  t.is(snapshot.sequence, from - 1, 'it stays')
  const sublevel = db.sublevel('sub')
  await sublevel.open()
  t.is(sublevel.snapshot().sequence, db.snapshot().sequence)
  t.is(db.snapshot().sequence, from, 'one write later')

  const changes = await db.changes({ from: snapshot.sequence + 1 })
  const writes = (async function () {
    for (let i = 0; i < 200; i++) {
      await db.put(`k${i % 50}`, String(i))
      // The loop waits in between.
      if (i % 20 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await db.put('end', '')
  })()
  for await (const [change] of changes) {
    copy.set(change.key, change.value)
    if (change.key === 'end') break
  }
  await writes
  t.same(new Map([...copy].sort()), new Map((await db.iterator().all()).sort()))
  t.is(await codeOf(changes.next()), 'LEVEL_CHANGES_NOT_OPEN', 'the loop has closed it')
  await db.close()
})

test('only what is durable', async function (t) {
  const db = new EskerLevel(newLocation(), KEPT)
  await db.put('a', '1')
  const changes = await db.changes({ onlyDurable: true })
  t.is(await changes.next(), undefined)
  await db.put('b', '2', { sync: true })
  t.is((await read(changes)).length, 2)
  // Node.js 18.17 has no such symbol.
  const watch = await db.watch()
  await (Symbol.asyncDispose ? changes[Symbol.asyncDispose]() : changes.close())
  await (Symbol.asyncDispose ? watch[Symbol.asyncDispose]() : watch.close())
  t.is(await codeOf(changes.next()), 'LEVEL_CHANGES_NOT_OPEN')
  t.is(await codeOf(watch.wait()), 'LEVEL_WATCH_NOT_OPEN')
  await db.close()
})

test('a loop over what is durable goes on with a sync', async function (t) {
  const db = new EskerLevel(newLocation(), KEPT)
  const changes = await db.changes({ onlyDurable: true })
  const looped = (async () => {
    for await (const batch of changes) return batch
  })()
  await db.put('a', '1', { sync: true })
  t.is((await looped)[0].key, 'a')
  await db.close()
})

test('changes that are not kept', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location)
  await db.put('a', '1')
  t.is(await codeOf(db.changes()), 'LEVEL_INVALID_ARGUMENT', 'none are kept')
  await db.close()
  await db.open({ keepChanges: { time: 3600 * 1000 } })
  t.is(await codeOf(db.changes({ from: 2 ** 40 })), 'LEVEL_INVALID_ARGUMENT')
  await db.put('b', '2')
  await db.close()
  await db.open({ keepChanges: 'as-before' })
  await db.put('c', '3')
  await db.close()
  await db.open({ keepChanges: { bytes: 0 } })
  const kept = (await read(await db.changes())).flat()
  t.same(
    kept.map((change) => change.key),
    ['b', 'c']
  )
  await db.close()
  await db.open()
  await db.close()
  await db.open(KEPT)
  const gone = await failure(db.changes({ from: kept[0].sequence }))
  t.is(gone.code, 'LEVEL_GONE', gone.message)
  t.is(gone.retryable, false)
  await db.close()
})

test('waits', async function (t) {
  const db = new EskerLevel(newLocation(), KEPT)
  const changes = await db.changes()
  const watch = await db.watch('a')
  const any = await db.watch()
  t.is(await watch.wait(0), false)
  t.is(await changes.wait(0), true, 'the first one begins to watch')
  t.is(await changes.wait(0), false)
  await db.put('b', '1')
  t.same([await watch.wait(0), await any.wait(), await any.wait(0)], [false, true, false])
  t.same([await changes.wait(), await changes.wait(0)], [true, false])
  await db.batch([{ type: 'put', key: 'aa', value: '1' }])
  t.same([await watch.wait(), await watch.wait(0.5)], [true, false])
  t.is((await read(changes)).length, 2)

  // What is read ahead is more to read.
  await db.put('a', '1')
  await db.put('a', '2')
  t.is((await changes.next())[0].value, '1')
  t.is(await changes.wait(0), true)
  t.is((await changes.next())[0].value, '2')
  t.is(await changes.wait(0), true, 'it was written since')
  t.is(await changes.wait(0), false)

  // Written while they wait, each by itself.
  const wholes = [() => changes.wait(), () => watch.wait(Infinity), () => any.wait(3600 * 1000)]
  for (const wait of wholes) {
    while (await any.wait(0));
    while (await watch.wait(0));
    const waiting = wait()
    await db.put('a', '3')
    t.is(await waiting, true)
  }

  const buffers = await db.watch(Buffer.from('a'), { keyEncoding: 'buffer' })
  await db.clear({ gte: 'a', lt: 'b' })
  t.is(await buffers.wait(), true, 'a range')
  await db.close()
})

test('more waits than the pool has threads', async function (t) {
  const db = new EskerLevel(newLocation(), KEPT)
  const watches = await Promise.all(Array.from({ length: 50 }, () => db.watch('a')))
  const waits = watches.map((watch) => watch.wait())
  const again = watches.map((watch) => watch.wait())
  await db.put('a', '1')
  t.ok((await Promise.all(waits.map((wait, i) => Promise.race([wait, again[i]])))).every(Boolean))
  await db.put('a', '2')
  t.ok((await Promise.all([...waits, ...again])).every(Boolean), 'each write ends one wait')
  await db.close()
})

test('a close beside a call under way', async function (t) {
  const db = new EskerLevel(newLocation(), KEPT)
  for (const isDatabase of [false, true]) {
    await db.open()
    await db.put('a', '1')
    const changes = await db.changes()
    const watch = await db.watch('a')
    const all = (await read(changes)).flat().length
    while (await changes.wait(0));
    const loop = await db.changes()
    let reached
    const reading = new Promise((resolve) => (reached = resolve))
    const looped = (async function () {
      let count = 0
      for await (const batch of loop) {
        count += batch.length
        if (count === all) reached()
      }
      return count
    })()
    await reading
    const waits = [changes.wait(), watch.wait(), watch.wait(3600 * 1000)].map(codeOf)
    const busy = [changes.next(), changes.wait(0), changes.keyspaceSettings(1, 1)].map(codeOf)
    t.same(await Promise.all(busy), Array(3).fill('LEVEL_CHANGES_BUSY'))
    if (isDatabase) await db.close()
    else await Promise.all([changes.close(), watch.close(), loop.close()])
    const [ofChanges, ofWatch] = ['LEVEL_CHANGES_NOT_OPEN', 'LEVEL_WATCH_NOT_OPEN']
    t.same(await Promise.all(waits), [ofChanges, ofWatch, ofWatch])
    t.is(await looped, all, 'the loop has ended')
    t.is(await codeOf(changes.next()), ofChanges)
    t.is(await codeOf(changes.wait(0)), ofChanges)
    t.is(await codeOf(changes.keyspaceSettings(1, 1)), ofChanges)
    t.is(await codeOf(changes[Symbol.asyncIterator]().next()), ofChanges)
    t.is(await codeOf(watch.wait(0)), ofWatch)
    await Promise.all([changes.close(), watch.close(), changes.close(), watch.close()])
    await db.close()
  }
  t.is(await codeOf(db.changes()), 'LEVEL_DATABASE_NOT_OPEN')
  t.is(await codeOf(db.watch('a')), 'LEVEL_DATABASE_NOT_OPEN')
})

test('reads that are closed under way', async function (t) {
  const db = new EskerLevel(newLocation(), KEPT)
  await db.open()
  await Promise.all(Array.from({ length: 3000 }, (_, i) => db.put(`k${i}`, 'v')))
  for (let round = 0; round < 50; round++) {
    const changes = await db.changes()
    const reading = codeOf(changes.next())
    const settings = round % 2 === 0 ? undefined : codeOf(changes.keyspaceSettings(1, 1))
    await changes.close()
    t.is(await reading, 'LEVEL_CHANGES_NOT_OPEN')
    if (settings !== undefined) t.is(await settings, 'LEVEL_CHANGES_BUSY')
  }
  // Made while the database closes: nothing is left open.
  const made = [db.changes(), db.watch('a'), db.changes()].map(codeOf)
  await db.close()
  t.same(await Promise.all(made), Array(3).fill('LEVEL_DATABASE_NOT_OPEN'))
  await db.open()
  t.is(await db.get('k0'), 'v')
  await db.close()
})

test('the native half refuses what comes after a close by itself', async function (t) {
  const database = new binding.Database()
  t.is(await codeOf(database.changes(0, false, 0, 0)), 'LEVEL_DATABASE_NOT_OPEN')
  t.is(await codeOf(database.watch('a')), 'LEVEL_DATABASE_NOT_OPEN')
  await database.open({ ...NATIVE_OPTIONS, location: newLocation() })
  const changes = await database.changes(0, false, 0, 0)
  const watch = await database.watch('a')
  while (await changes.wait(0));
  const waits = [changes.wait(), watch.wait()].map(codeOf)
  await database.close()
  t.same(await Promise.all(waits), Array(2).fill('LEVEL_DATABASE_NOT_OPEN'))
  t.is(await codeOf(changes.nextv(1, 0)), 'LEVEL_DATABASE_NOT_OPEN')
  t.is(await codeOf(watch.wait()), 'LEVEL_DATABASE_NOT_OPEN')
  t.is(await codeOf(changes.wait()), 'LEVEL_DATABASE_NOT_OPEN')
  changes.close()
  changes.close()
  watch.close()
  watch.close()
  t.is(await codeOf(changes.wait()), 'LEVEL_CHANGES_NOT_OPEN')
  t.is(await codeOf(watch.wait()), 'LEVEL_WATCH_NOT_OPEN')
  t.throws(() => new binding.ChangeReader(), Error)
  t.throws(() => new binding.Watch(), Error)
  t.throws(() => watch.wait.call({}), Error)
})

test('wrong arguments', async function (t) {
  const db = new EskerLevel(newLocation(), KEPT)
  await db.open()
  for (const from of ['1', {}, null, 1n, true])
    t.ok((await failure(db.changes({ from }))) instanceof TypeError)
  for (const from of [-1, 0.5, NaN, Infinity, 2 ** 60])
    t.ok((await failure(db.changes({ from }))) instanceof RangeError)
  for (const onlyDurable of [1, 'yes', null])
    t.ok((await failure(db.changes({ onlyDurable }))) instanceof TypeError)
  t.is(await codeOf(db.changes({ keyEncoding: 'nonsense' })), 'LEVEL_ENCODING_NOT_FOUND')
  t.is(await codeOf(db.watch(null)), 'LEVEL_INVALID_KEY')
  const same = (n) => n
  const keyEncoding = { name: 'same', format: 'utf8', encode: same, decode: same }
  t.ok((await failure(db.watch(1, { keyEncoding }))) instanceof TypeError)
  const changes = await db.changes()
  const watch = await db.watch('a')
  for (const timeout of ['1', {}, null, -1, NaN, 1n]) {
    t.ok((await failure(changes.wait(timeout))) instanceof TypeError)
    t.ok((await failure(watch.wait(timeout))) instanceof TypeError)
  }
  for (const number of ['1', undefined, null]) {
    t.ok((await failure(changes.keyspaceSettings(number, 1))) instanceof TypeError)
    t.ok((await failure(changes.keyspaceSettings(1, number))) instanceof TypeError)
  }
  t.ok((await failure(changes.keyspaceSettings(-1, 1))) instanceof RangeError)
  await db.close()

  const wrong = [1, true, 'always', [], {}, { bytes: 1, time: 1 }, { bytes: 1, others: 1 }]
  wrong.push({ bytes: '1' }, { bytes: -1 }, { time: 0.5 }, { time: NaN }, { bytes: null })
  for (const keepChanges of wrong) {
    const err = await failure(new EskerLevel(newLocation(), { keepChanges }).open())
    t.ok(err.cause instanceof TypeError || err.cause instanceof RangeError, err.cause?.message)
  }
})
