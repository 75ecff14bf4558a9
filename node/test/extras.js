'use strict'

// What `abstract-level` does not have: merges, times to live, and the calls of maintenance.

const test = require('tape')
const fs = require('node:fs')
const path = require('node:path')
const { EskerLevel } = require('..')
const { newLocation } = require('./directories')
const { codeOf, failure } = require('./failures')

const u64 = {
  name: 'u64',
  format: 'buffer',
  encode: (n) => {
    const b = Buffer.alloc(8)
    b.writeBigUInt64LE(BigInt(n))
    return b
  },
  decode: (b) => Number(b.readBigUInt64LE())
}

test('merge() adds', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location, { mergeOperator: 'uint64add', valueEncoding: u64 })
  await db.merge('a', 1)
  await Promise.all(Array.from({ length: 100 }, () => db.merge('a', 2)))
  t.is(await db.get('a'), 201)
  t.is(
    await codeOf(db.merge('a', 'no number', { valueEncoding: 'utf8' })),
    'LEVEL_INVALID_ARGUMENT'
  )
  await db.merge('a', 1, { sync: true })
  t.same(await db.iterator().all(), [['a', 202]])
  const sublevel = db.sublevel('s', { valueEncoding: u64 })
  await db.merge(sublevel.prefixKey('a', 'utf8'), 7)
  t.is(await sublevel.get('a'), 7)
  await db.close()
  await db.open()
  t.is(await db.get('a'), 202)
  await db.close()

  const other = new EskerLevel(location, { mergeOperator: 'max' })
  try {
    await other.open()
    t.fail('another operator')
  } catch (err) {
    t.is(err.cause.code, 'LEVEL_INVALID_ARGUMENT', err.cause.message)
  }
  const none = new EskerLevel(location, { valueEncoding: u64 })
  t.is(await none.get('a'), 202, 'the lock was released, and the operator is known by its name')
  await none.close()
})

test('without an operator merges are refused', async function (t) {
  const db = new EskerLevel(newLocation())
  t.is(await codeOf(db.merge('a', '1')), 'LEVEL_INVALID_ARGUMENT')
  t.is(await db.get('a'), undefined)
  await db.close()
})

test('times to live', async function (t) {
  const db = new EskerLevel(newLocation(), { ttl: true })
  const hour = 3600 * 1000
  await db.put('for good', '1')
  await db.put('hour', '1', { ttl: hour })
  await db.batch([
    { type: 'put', key: 'batch', value: '1', ttl: hour },
    { type: 'put', key: 'batch for good', value: '1' }
  ])
  await db.batch(
    [
      { type: 'put', key: 'all', value: '1' },
      { type: 'del', key: 'hour' }
    ],
    { ttl: hour }
  )
  await db.batch().put('chained', '1', { ttl: hour }).put('chained for good', '1').write()
  for (const key of ['batch', 'all', 'chained']) {
    const expiry = await db.expiresAt(key)
    t.ok(Number.isInteger(expiry) && expiry > 1.7e12, `${key}: ${new Date(expiry).toISOString()}`)
  }
  for (const key of ['for good', 'batch for good', 'chained for good'])
    t.is(await db.expiresAt(key), Infinity, key)
  t.is(await db.expiresAt('hour'), undefined, 'deleted')

  const before = await db.expiresAt('all')
  const snapshot = db.snapshot()
  t.is(await db.touch('all', 10 * hour), true)
  t.ok((await db.expiresAt('all')) > before)
  t.is(await db.expiresAt('all', { snapshot }), before)
  t.is(await db.persist('all'), true)
  t.is(await db.expiresAt('all'), Infinity)
  t.is(await db.get('all'), '1')
  t.is(await db.touch('nobody', hour), false)
  t.is(await db.persist('nobody'), false)
  await snapshot.close()
  t.is(await codeOf(db.expiresAt('all', { snapshot })), 'LEVEL_SNAPSHOT_NOT_OPEN')

  // The clock is that of the machine: what lives for a millisecond is waited for.
  await db.put('short', '1', { ttl: 1 })
  while ((await db.get('short')) !== undefined);
  t.is(await db.has('short'), false)
  t.notOk((await db.keys().all()).includes('short'))
  t.is(await db.touch('short', hour), false)
  const sublevel = db.sublevel('s')
  await sublevel.put('a', '1', { ttl: hour })
  t.ok(
    (await db.expiresAt(sublevel.prefixKey('a', 'utf8'))) < Infinity,
    'options of sublevels arrive'
  )
  await db.close()
})

test('a default time to live, and none', async function (t) {
  const db = new EskerLevel(newLocation(), { ttl: 3600 * 1000 })
  await db.put('a', '1')
  t.ok((await db.expiresAt('a')) < Infinity)
  await db.close()

  const never = new EskerLevel(newLocation())
  t.is(await codeOf(never.put('a', '1', { ttl: 1 })), 'LEVEL_INVALID_ARGUMENT')
  t.is(await codeOf(never.touch('a', 1)), 'LEVEL_INVALID_ARGUMENT')
  await never.put('a', '1')
  t.is(await never.expiresAt('a'), Infinity)
  await never.close()
})

test('keyspaces are apart', async function (t) {
  const location = newLocation()
  const one = new EskerLevel(location, { keyspace: 'one' })
  await one.put('a', '1')
  await one.close()
  const two = new EskerLevel(location, { keyspace: 'two' })
  t.is(await two.get('a'), undefined)
  await two.close()
  await one.open()
  t.is(await one.get('a'), '1')
  await one.close()
})

test('a database is read beside its writer', async function (t) {
  const location = newLocation()
  const missing = new EskerLevel(location, { readOnly: true })
  try {
    await missing.open()
    t.fail('opened what is not there')
  } catch (err) {
    t.is(err.cause.code, 'LEVEL_MISSING', err.cause.message)
  }
  t.notOk(fs.existsSync(location), 'nothing was created')
  const writer = new EskerLevel(location)
  await writer.put('a', '1')
  const reader = new EskerLevel(location, { readOnly: true })
  t.is(await reader.get('a'), '1')
  t.is(await codeOf(reader.put('a', '2')), 'LEVEL_READ_ONLY')
  t.is(await codeOf(reader.batch([{ type: 'del', key: 'a' }])), 'LEVEL_READ_ONLY')
  t.is(await codeOf(reader.clear()), 'LEVEL_READ_ONLY')
  t.is(await codeOf(reader.clear({ limit: 1 })), 'LEVEL_READ_ONLY')
  await writer.put('a', '2')
  t.same(await reader.iterator().all(), [['a', '1']], 'it is as it was when it was opened')
  await reader.close()
  await writer.close()
})

test('sizes, compactions, properties', async function (t) {
  const db = new EskerLevel(newLocation(), {
    compression: false,
    cacheSize: 1 << 20,
    writeBufferSize: 1 << 20,
    blockSize: 4096
  })
  t.is(await db.approximateSize('a', 'z'), 0)
  for (let i = 0; i < 20; i++) {
    await db.batch(
      Array.from({ length: 100 }, (_, j) => ({
        type: 'put',
        key: `k${i} ${j}`,
        value: 'v'.repeat(1000)
      }))
    )
  }
  await db.compactRange('a', 'z')
  const size = await db.approximateSize('a', 'z')
  t.ok(size > 1.9e6 && size < 3e6, `${size} bytes`)
  t.ok((await db.approximateSize('k1', 'k2')) < size)
  t.is((await db.approximateSize('l', 'z')) < 20000, true)
  t.is(await db.approximateSize('z', 'a'), 0, 'an inverted range')
  await db.clear()
  await db.compactRange('a', 'z')
  t.ok((await db.approximateSize('a', 'z')) < 20000, 'the space came back')
  t.is(typeof db.getProperty('esker.health.writable'), 'string')
  await db.close()
})

test('clear() of a range, of a number of keys, of a snapshot', async function (t) {
  const db = new EskerLevel(newLocation())
  const put = (from, to) =>
    db.batch(
      Array.from({ length: to - from }, (_, i) => ({
        type: 'put',
        key: String(from + i),
        value: 'v'
      }))
    )
  await put(10000, 30000)
  await db.clear({ gte: '15000', lt: '20000' })
  t.is((await db.keys().all()).length, 15000)
  await db.clear({ gt: '20000', limit: 9000 })
  t.is((await db.keys().all()).length, 6000)
  t.same(await db.keys({ gte: '20000', limit: 2 }).all(), ['20000', '29001'])
  await db.clear({ reverse: true, limit: 500 })
  t.same(await db.keys({ reverse: true, limit: 1 }).all(), ['29499'])
  const snapshot = db.snapshot()
  await put(40000, 40100)
  await db.clear({ snapshot })
  t.is((await db.keys().all()).length, 100, 'newer keys stay')
  t.is((await db.keys({ snapshot }).all()).length, 5500, 'and the snapshot keeps the others')
  await db.clear({ gte: 'z', lt: 'a' })
  await db.clear({ limit: 0 })
  t.is((await db.keys().all()).length, 100)
  await db.close()
})

test('repair() makes a damaged database open', async function (t) {
  const location = newLocation()
  t.is(await codeOf(EskerLevel.repair(location)), 'LEVEL_MISSING')
  const db = new EskerLevel(location)
  await db.put('a', '1')
  t.is(await codeOf(EskerLevel.repair(location)), 'LEVEL_LOCKED')
  await db.compactRange('', '\uffff')
  await db.close()
  fs.rmSync(path.join(location, 'CURRENT'))
  t.is(await codeOf(db.open()), 'LEVEL_DATABASE_NOT_OPEN')
  await EskerLevel.repair(location)
  await db.open()
  t.is(await db.get('a'), '1')
  await db.close()
})

test('checkpoints, checks, and the end of a database', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location)
  await db.put('a', '1')
  await db.flush()
  await db.verify()
  const [linked, copied] = [newLocation(), newLocation()]
  await db.checkpoint(linked)
  await db.put('a', '2')
  await db.checkpoint(copied, { copy: true })
  for (const [directory, value] of [
    [linked, '1'],
    [copied, '2']
  ]) {
    const copy = new EskerLevel(directory)
    t.is(await copy.get('a'), value)
    await copy.close()
  }
  t.is(
    await codeOf(db.checkpoint(copied)),
    'LEVEL_INVALID_ARGUMENT',
    'a directory that is not empty'
  )
  t.is(await codeOf(EskerLevel.destroy(location)), 'LEVEL_LOCKED')
  await db.close()

  // A byte of a table is another one.
  const tables = fs.readdirSync(copied).filter((name) => name.endsWith('.table'))
  t.ok(tables.length > 0, tables.join(' '))
  for (const name of tables) {
    const bytes = fs.readFileSync(path.join(copied, name))
    bytes[10] ^= 0xff
    fs.writeFileSync(path.join(copied, name), bytes)
  }
  const damaged = new EskerLevel(copied)
  const found = await failure(damaged.verify())
  t.is(found.code, 'LEVEL_CORRUPTION')
  t.is(found.damage[0], found.message)
  await damaged.close()

  // Also where it does not open: the tables are found all the same.
  await EskerLevel.verify(linked)
  const files = fs.readdirSync(copied).filter((name) => /^(CURRENT|MANIFEST-.*)$/.test(name))
  for (const name of files) fs.writeFileSync(path.join(copied, name), 'damaged')
  const apart = await failure(EskerLevel.verify(copied))
  t.is(apart.code, 'LEVEL_CORRUPTION')
  for (const name of tables) t.ok(apart.damage.some((text) => text.includes(name)), name)
  t.ok(apart.damage.length > tables.length)
  const nothing = await failure(EskerLevel.verify(newLocation()))
  t.is(nothing.code, 'LEVEL_MISSING')
  t.is(nothing.damage, undefined)

  await EskerLevel.destroy(location)
  t.same(fs.readdirSync(location), [])
  await EskerLevel.destroy(location)
  await db.open()
  t.is(await db.has('a'), false)
  await db.close()
})

test('the keyspaces of a database', async function (t) {
  const location = newLocation()
  const one = new EskerLevel(location, { keyspace: 'one' })
  await one.put('a', '1')
  await one.close()
  const two = new EskerLevel(location, { keyspace: 'two' })
  t.same(await two.keyspaces(), ['one', 'two'])
  t.is(await codeOf(two.dropKeyspace('three')), 'LEVEL_MISSING')
  await two.dropKeyspace('one')
  t.same(await two.keyspaces(), ['two'])
  await two.dropKeyspace('two')
  t.is(await codeOf(two.get('a')), 'LEVEL_KEYSPACE_DROPPED', 'also its own')
  await two.close()
  await one.open()
  t.is(await one.get('a'), undefined)
  await one.close()
})

test('settings that change while a database is in use', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location)
  await db.open()
  await db.put('before', '5')
  t.is(await codeOf(db.touch('before', 1000)), 'LEVEL_INVALID_ARGUMENT')
  await db.setTtl(1000)
  await db.put('after', '1')
  t.is(await db.expiresAt('before'), Infinity)
  t.ok((await db.expiresAt('after')) < Infinity)
  await db.setTtl(true)
  await db.put('later', '1')
  t.is(await db.expiresAt('later'), Infinity)
  for (const wrong of [0, -1, 0.5, NaN, Infinity])
    t.is(await codeOf(db.setTtl(wrong)), 'LEVEL_INVALID_ARGUMENT')
  await db.close()

  const best = new EskerLevel(newLocation())
  await best.put('k', '5')
  await best.setMergeOperator('max')
  await best.setMergeOperator('max')
  await best.merge('k', '7')
  t.is(await best.get('k'), '7')
  t.is(await codeOf(best.setMergeOperator('none')), 'LEVEL_INVALID_ARGUMENT')
  await best.close()

  for (const wrong of [undefined, null, false, '1', {}, []]) {
    const nameOf = async (promise) => promise.then(undefined, (err) => err.name)
    t.is(await nameOf(db.setTtl(wrong)), 'TypeError')
    if (typeof wrong !== 'string') t.is(await nameOf(db.setMergeOperator(wrong)), 'TypeError')
  }
})

test('another name for a keyspace', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location, { keyspace: 'drafts' })
  await db.put('a', '1')
  const iterator = db.iterator()
  const snapshot = db.snapshot()
  await db.renameKeyspace('letters')
  await db.renameKeyspace('letters')
  await db.put('b', '2')
  t.same(await iterator.all(), [['a', '1']])
  t.is(await db.get('b', { snapshot }), undefined)
  await snapshot.close()
  for (const wrong of ['', 'a\0b', 'a\nb', 'x'.repeat(256)])
    t.is(await codeOf(db.renameKeyspace(wrong)), 'LEVEL_INVALID_ARGUMENT')
  await db.close()

  await db.open({ keyspace: 'letters' })
  t.same(await db.keys().all(), ['a', 'b'])
  await db.close()
  await db.open()
  t.same(await db.keys().all(), [], 'the old name is free')
  t.is(await codeOf(db.renameKeyspace('letters')), 'LEVEL_EXISTS')
  await db.close()
  const reader = new EskerLevel(location, { keyspace: 'letters', readOnly: true })
  await reader.open()
  t.is(await codeOf(reader.renameKeyspace('other')), 'LEVEL_READ_ONLY')
  await reader.close()
  for (const wrong of [undefined, null, 1, {}, Buffer.from('a')])
    t.is(await db.renameKeyspace(wrong).then(undefined, (err) => err.name), 'TypeError')
})

test('a time to live above a merge operator', async function (t) {
  const db = new EskerLevel(newLocation(), { mergeOperator: 'max' })
  await db.put('k', '5')
  await db.merge('k', '7')
  // Its operand is combined first.
  await db.setTtl(3600 * 1000)
  await db.merge('k', '6')
  t.is(await db.get('k'), '7')
  const snapshot = db.snapshot()
  await db.merge('k', '9')
  t.is(await codeOf(db.setMergeOperator('min')), 'LEVEL_INVALID_ARGUMENT', 'the snapshot sees it')
  await snapshot.close()
  await db.setMergeOperator('min')
  await db.merge('k', '8')
  t.is(await db.get('k'), '8')
  await db.close()
})

test('about how many keys a range has', async function (t) {
  const db = new EskerLevel(newLocation())
  t.is(await db.approximateCount('a', 'z'), 0)
  await db.batch(
    Array.from({ length: 1000 }, (_, i) => ({ type: 'put', key: `k${i}`, value: 'v' }))
  )
  await db.compactRange('a', 'z')
  t.is(await db.approximateCount('a', 'z'), 1000)
  t.is(await db.approximateCount('l', 'z'), 0)
  await db.close()
})
