'use strict'

// Arguments of wrong types, and functions of the program that throw.

const test = require('tape')
const { EskerLevel } = require('..')
const { newLocation } = require('./directories')
const { failure } = require('./failures')

test('a location must be a path', async function (t) {
  for (const location of [undefined, null, '', 1, {}, [], Symbol('path'), Buffer.from('path')]) {
    t.throws(() => new EskerLevel(location), TypeError)
    t.ok((await failure(EskerLevel.repair(location))) instanceof TypeError)
    t.ok((await failure(EskerLevel.destroy(location))) instanceof TypeError)
    t.ok((await failure(EskerLevel.verify(location))) instanceof TypeError)
  }
  const err = await failure(new EskerLevel('a\0b').open())
  t.is(err.code, 'LEVEL_DATABASE_NOT_OPEN')
  t.is(err.cause.code, 'LEVEL_IO_ERROR', err.cause.message)
  const file = await failure(new EskerLevel(__filename).open())
  t.is(file.cause.code, 'LEVEL_IO_ERROR', file.cause.message)
})

test('options of open() must be of their types', async function (t) {
  const wrong = {
    readOnly: ['yes', 1],
    keyspace: [1, {}, Symbol('name')],
    mergeOperator: [1, {}],
    ttl: ['1', {}, []],
    compression: ['lz4', 1],
    cacheSize: ['1', -1, 1.5, NaN, Infinity, 2 ** 60],
    writeBufferSize: ['1', -1, 1.5],
    blockSize: [{}, -1],
    memoryBudget: [true, -1]
  }
  for (const [name, values] of Object.entries(wrong)) {
    for (const value of values) {
      const err = await failure(new EskerLevel(newLocation(), { [name]: value }).open())
      t.ok(err.cause instanceof TypeError || err.cause instanceof RangeError, err.cause.message)
    }
  }
  const refused = [
    { keyspace: '' },
    { keyspace: 'a\0b' },
    { mergeOperator: 'nonsense' },
    { ttl: -1 },
    { ttl: 0 },
    { ttl: NaN },
    { ttl: 0.5 },
    { ttl: Infinity },
    { memoryBudget: 1 }
  ]
  for (const options of refused) {
    const err = await failure(new EskerLevel(newLocation(), options).open())
    t.is(err.cause.code, 'LEVEL_INVALID_ARGUMENT', err.cause.message)
  }
})

test('what an encoding makes must be text or bytes', async function (t) {
  const db = new EskerLevel(newLocation())
  await db.open()
  for (const data of [
    1,
    null,
    undefined,
    {},
    [1],
    Symbol('s'),
    new Uint16Array(2),
    new DataView(new ArrayBuffer(2)),
    () => {}
  ]) {
    const encoding = { name: 'wrong', format: 'utf8', encode: () => data, decode: (data) => data }
    t.ok(
      (await failure(db.put('a', 'b', { valueEncoding: encoding }))) instanceof TypeError,
      `value ${typeof data}`
    )
    t.ok((await failure(db.put('a', 'b', { keyEncoding: encoding }))) instanceof TypeError, 'key')
    t.ok((await failure(db.get('a', { keyEncoding: encoding }))) instanceof TypeError, 'get')
    t.ok((await failure(db.has('a', { keyEncoding: encoding }))) instanceof TypeError, 'has')
    t.ok(
      (await failure(db.getMany(['a'], { keyEncoding: encoding }))) instanceof TypeError,
      'getMany'
    )
    t.ok((await failure(db.del('a', { keyEncoding: encoding }))) instanceof TypeError, 'del')
    t.ok(
      (await failure(
        db.batch([{ type: 'put', key: 'a', value: 'b', valueEncoding: encoding }])
      )) instanceof TypeError,
      'batch'
    )
    t.ok(
      (await failure(db.merge('a', 'b', { valueEncoding: encoding }))) instanceof TypeError,
      'merge'
    )
    t.ok((await failure(db.touch('a', 1, { keyEncoding: encoding }))) instanceof TypeError, 'touch')
    t.throws(
      () => db.batch().put('a', 'b', { valueEncoding: encoding }),
      TypeError,
      'chained batch'
    )
    t.throws(() => db.getSync('a', { keyEncoding: encoding }), TypeError, 'getSync')
    if (data !== undefined) {
      t.throws(() => db.iterator({ gte: 'a', keyEncoding: encoding }), TypeError, 'iterator')
      t.ok(
        (await failure(db.clear({ gte: 'a', keyEncoding: encoding }))) instanceof TypeError,
        'clear'
      )
    }
    const iterator = db.iterator()
    t.throws(() => iterator.seek('a', { keyEncoding: encoding }), TypeError, 'seek')
    t.same(await iterator.all(), [], 'the iterator goes on')
  }
  t.same(await db.keys().all(), [], 'nothing was written')
  await db.close()
})

test('other arguments must be of their types', async function (t) {
  const db = new EskerLevel(newLocation(), { ttl: true })
  await db.open()
  for (const ttl of ['1', {}, true, 1n]) {
    t.ok((await failure(db.put('a', 'b', { ttl }))) instanceof TypeError)
    t.ok(
      (await failure(db.batch([{ type: 'put', key: 'a', value: 'b', ttl }]))) instanceof TypeError
    )
    t.throws(() => db.batch().put('a', 'b', { ttl }), TypeError)
    t.ok((await failure(db.touch('a', ttl))) instanceof TypeError)
    t.ok((await failure(db.expireAt('a', ttl))) instanceof TypeError)
    t.ok((await failure(db.putIfAbsent('a', 'b', { ttl }))) instanceof TypeError)
    t.ok((await failure(db.compareAndSwap('a', 'b', 'c', { ttl }))) instanceof TypeError)
    t.ok((await failure(db.mergeAndGet('a', 'b', { ttl }))) instanceof TypeError)
  }
  for (const ttl of [0, -1, 0.5, NaN, Infinity, 2 ** 60]) {
    t.is((await failure(db.put('a', 'b', { ttl }))).code, 'LEVEL_INVALID_ARGUMENT')
    t.is(
      (await failure(db.batch([{ type: 'put', key: 'a', value: 'b', ttl }]))).code,
      'LEVEL_INVALID_ARGUMENT'
    )
    t.throws(() => db.batch().put('a', 'b', { ttl }), { code: 'LEVEL_INVALID_ARGUMENT' })
    t.is((await failure(db.touch('a', ttl))).code, 'LEVEL_INVALID_ARGUMENT')
  }
  for (const highWaterMarkBytes of ['1', -1, NaN, {}]) {
    t.throws(() => db.iterator({ highWaterMarkBytes }), TypeError)
  }
  const foreign = { ref() {}, unref() {} }
  t.ok((await failure(db.get('a', { snapshot: foreign }))) instanceof TypeError)
  t.ok((await failure(db.clear({ snapshot: foreign }))) instanceof TypeError)
  t.throws(() => db.iterator({ snapshot: foreign }), TypeError)
  for (const name of [undefined, 1, null]) t.throws(() => db.getProperty(name), TypeError)
  t.is(db.getProperty('nonsense'), undefined)
  for (const key of [undefined, null]) {
    for (const call of [
      'compareAndSwap',
      'expireAt',
      'merge',
      'mergeAndGet',
      'putIfAbsent',
      'take',
      'touch',
      'persist',
      'expiresAt',
      'approximateSize',
      'approximateCount',
      'compactRange'
    ]) {
      t.is(
        (await failure(db[call](key, ['touch', 'expireAt'].includes(call) ? 1 : 'a'))).code,
        'LEVEL_INVALID_KEY',
        call
      )
    }
  }
  for (const call of ['merge', 'mergeAndGet', 'putIfAbsent'])
    t.is((await failure(db[call]('a'))).code, 'LEVEL_INVALID_VALUE')
  t.is((await failure(db.compareAndSwap('a', null, '1'))).code, 'LEVEL_INVALID_VALUE')
  t.is((await failure(db.compareAndSwap('a', '1', null))).code, 'LEVEL_INVALID_VALUE')
  for (const name of [undefined, null, 1, {}]) {
    t.ok((await failure(db.dropKeyspace(name))) instanceof TypeError)
    t.ok((await failure(db.checkpoint(name))) instanceof TypeError)
  }
  t.ok((await failure(db.checkpoint(''))) instanceof TypeError)
  t.ok((await failure(db.checkpoint('copy', { copy: 1 }))) instanceof TypeError)
  t.ok((await failure(db.count({ snapshot: foreign }))) instanceof TypeError)
  t.same(await db.keys().all(), [])
  await db.close()
})

test('a snapshot of another database is refused', async function (t) {
  const one = new EskerLevel(newLocation())
  const other = new EskerLevel(newLocation())
  await one.open()
  await other.open()
  const snapshot = other.snapshot()
  t.is((await failure(one.get('a', { snapshot }))).code, 'LEVEL_INVALID_ARGUMENT')
  t.is((await failure(one.getMany(['a'], { snapshot }))).code, 'LEVEL_INVALID_ARGUMENT')
  t.is((await failure(one.has('a', { snapshot }))).code, 'LEVEL_INVALID_ARGUMENT')
  t.is((await failure(one.hasMany(['a'], { snapshot }))).code, 'LEVEL_INVALID_ARGUMENT')
  t.is((await failure(one.clear({ snapshot }))).code, 'LEVEL_INVALID_ARGUMENT')
  t.is((await failure(one.expiresAt('a', { snapshot }))).code, 'LEVEL_INVALID_ARGUMENT')
  t.is((await failure(one.iterator({ snapshot }).next())).code, 'LEVEL_INVALID_ARGUMENT')
  t.throws(() => one.getSync('a', { snapshot }), { code: 'LEVEL_INVALID_ARGUMENT' })
  await one.close()
  await other.close()
})

test('functions of the program that throw', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location)
  const thrown = new Error('thrown by the program')
  const fail = () => {
    throw thrown
  }
  await db.open()
  await db.put('a', '1')

  const encoding = { name: 'failing', format: 'utf8', encode: fail, decode: fail }
  t.is(await failure(db.put('b', '2', { valueEncoding: encoding })), thrown)
  t.is((await failure(db.get('a', { valueEncoding: encoding }))).cause, thrown)
  t.is((await failure(db.iterator({ valueEncoding: encoding }).all())).cause, thrown)
  const iterator = db.iterator({ valueEncoding: encoding })
  t.is((await failure(iterator.next())).cause, thrown)
  await iterator.close()

  const options = {
    get snapshot() {
      throw thrown
    }
  }
  t.is(await failure(db.get('a', options)), thrown, 'a getter of the options')
  t.is(await failure(db.clear(options)), thrown)
  t.throws(() => db.iterator(options), thrown)
  t.is(
    await failure(
      db.put('b', '2', {
        get sync() {
          throw thrown
        }
      })
    ),
    thrown
  )

  db.hooks.prewrite.add(fail)
  t.is((await failure(db.put('b', '2'))).cause, thrown)
  t.is((await failure(db.batch([{ type: 'del', key: 'a' }]))).cause, thrown)
  db.hooks.prewrite.delete(fail)

  db.on('write', fail)
  t.is(await failure(db.put('b', '2')), thrown, 'a listener')
  db.off('write', fail)
  t.is(await db.get('b'), '2', 'it was told of what was done')

  try {
    for await (const [key] of db.iterator()) fail(key)
  } catch (err) {
    t.is(err, thrown, 'the body of a loop')
  }

  await db.close()
  db.hooks.postopen.add(async () => fail())
  t.is((await failure(db.open())).cause, thrown)
  t.is(db.status, 'closed')
  const again = new EskerLevel(location)
  await again.open()
  t.same(await again.keys().all(), ['a', 'b'], 'the lock was released')
  await again.close()
})
