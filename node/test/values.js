'use strict'

// Which bytes keys and values may be, and how large.

const test = require('tape')
const { EskerLevel } = require('..')
const { newLocation } = require('./directories')

const withDatabase = (name, options, body) =>
  test(name, async function (t) {
    const db = new EskerLevel(newLocation(), options)
    await db.open()
    await body(t, db)
    await db.close()
  })

const rejects = async function (t, promise, code, what) {
  try {
    await promise
    t.fail(`${what}: no error`)
  } catch (err) {
    t.is(err.code ?? err.name, code, `${what}: ${err.message}`)
  }
}

withDatabase('zero bytes are bytes like others', {}, async function (t, db) {
  const keys = ['', '\0', '\0\0', 'a', 'a\0', 'a\0b', 'b']
  await db.batch(keys.map((key) => ({ type: 'put', key, value: `\0${key}\0` })))
  t.same(await db.keys().all(), keys)
  t.same(
    await db.getMany(keys),
    keys.map((key) => `\0${key}\0`)
  )
  t.is(db.getSync('a\0b'), '\0a\0b\0')
  t.same(await db.keys({ gt: 'a', lt: 'a\0b' }).all(), ['a\0'])
  await db.del('a\0')
  t.is(await db.has('a\0'), false)
  t.is(await db.has('a'), true)
})

withDatabase('text of any kind', {}, async function (t, db) {
  for (const text of [
    '\u00e4\u00f6\u00fc',
    '\u20ac',
    '\ud83d\ude00',
    'a\u0300',
    '\ufeffmark',
    '\uffff'
  ]) {
    await db.put(text, text)
    t.is(await db.get(text), text)
    t.is(db.getSync(text), text)
    t.same(await db.keys({ gte: text, lte: text }).all(), [text])
    t.same(await db.get(text, { valueEncoding: 'buffer' }), Buffer.from(text))
  }
})

withDatabase('what is not Unicode becomes the replacement character', {}, async function (t, db) {
  await db.put('lone surrogate', 'a\ud800b')
  t.is(await db.get('lone surrogate'), 'a\ufffdb')
  for (const bytes of [[0xff], [0xe2, 0x82], [0x61, 0xc0, 0x80], [0xf0, 0x9f, 0x98, 0x80, 0xfe]]) {
    const value = Buffer.from(bytes)
    await db.put('bytes', value, { valueEncoding: 'buffer' })
    t.is(await db.get('bytes'), value.toString('utf8'))
    t.is(db.getSync('bytes'), value.toString('utf8'))
    t.same(await db.values({ gte: 'bytes', lte: 'bytes' }).all(), [value.toString('utf8')])
    t.same(await db.get('bytes', { valueEncoding: 'buffer' }), value)
  }
})

withDatabase(
  'buffers and views',
  { keyEncoding: 'view', valueEncoding: 'buffer' },
  async function (t, db) {
    const memory = new Uint8Array([1, 2, 3, 4, 5, 6])
    const key = memory.subarray(1, 3)
    const value = Buffer.from(memory.buffer, 3, 2)
    await db.put(key, value)
    const found = await db.get(new Uint8Array([2, 3]))
    t.ok(Buffer.isBuffer(found), 'a Buffer')
    t.same(found, Buffer.from([4, 5]))
    const view = await db.get(key, { valueEncoding: 'view' })
    t.ok(view instanceof Uint8Array && !Buffer.isBuffer(view), 'a Uint8Array')
    t.same([...view], [4, 5])
    const [entry] = await db.iterator().all()
    t.ok(!Buffer.isBuffer(entry[0]) && Buffer.isBuffer(entry[1]), 'each in its encoding')
    t.same([...entry[0]], [2, 3])
    await db.put(new Uint8Array(0), Buffer.alloc(0))
    t.is((await db.get(new Uint8Array(0))).length, 0, 'both may be empty')
    t.is((await db.get(new Uint8Array(0), { valueEncoding: 'view' })).length, 0)
    t.is(await db.get(new Uint8Array(0), { valueEncoding: 'utf8' }), '')
  }
)

withDatabase(
  'what is changed after the call is not written',
  { valueEncoding: 'buffer' },
  async function (t, db) {
    const value = Buffer.from('before')
    const operations = [{ type: 'put', key: 'batch', value }]
    const promises = [db.put('put', value), db.batch(operations)]
    const chained = db.batch().put('chained', value)
    // `batch()` and `put()` have encoded and copied when they return.
    value.fill('x')
    operations[0].key = 'other'
    await Promise.all(promises)
    await chained.write()
    t.same((await db.getMany(['put', 'batch', 'chained'])).map(String), [
      'before',
      'before',
      'before'
    ])
  }
)

withDatabase(
  'memory that moves, is shared or is gone',
  { valueEncoding: 'view' },
  async function (t, db) {
    const shared = new Uint8Array(new SharedArrayBuffer(3)).fill(7)
    await db.put('shared', shared)
    t.same([...(await db.get('shared'))], [7, 7, 7])

    const buffer = new ArrayBuffer(8, { maxByteLength: 64 })
    const resizable = new Uint8Array(buffer)
    const promise = db.put('resizable', resizable.fill(1))
    buffer.resize?.(0)
    await promise
    t.same([...(await db.get('resizable'))], [1, 1, 1, 1, 1, 1, 1, 1])

    const detached = new Uint8Array(4)
    structuredClone(detached.buffer, { transfer: [detached.buffer] })
    await db.put('detached', detached)
    t.is((await db.get('detached')).length, 0, 'a detached array has no bytes')
  }
)

withDatabase('large values', { valueEncoding: 'buffer' }, async function (t, db) {
  for (const size of [1000, 32768, 65535, 65536, 1 << 20, 5 << 20]) {
    const value = Buffer.alloc(size, `${size},`)
    await db.put(String(size), value)
    t.ok(value.equals(await db.get(String(size))), `${size} bytes`)
    t.ok(
      value.equals(await db.get(String(size), { valueEncoding: 'view' })),
      `${size} bytes as view`
    )
    t.is(
      await db.get(String(size), { valueEncoding: 'utf8' }),
      value.toString(),
      `${size} bytes as text`
    )
  }
  const entries = await db.iterator().all()
  t.is(entries.length, 6)
  t.ok(entries.every(([key, value]) => value.length === Number(key)))
})

withDatabase(
  'lengths beyond the limits are refused',
  { valueEncoding: 'buffer' },
  async function (t, db) {
    const longest = 'k'.repeat(2 ** 20)
    await db.put(longest, Buffer.from('v'))
    t.same(await db.get(longest), Buffer.from('v'))
    const long = longest + 'k'
    await rejects(t, db.put(long, Buffer.from('v')), 'LEVEL_INVALID_ARGUMENT', 'put of a long key')
    await rejects(
      t,
      db.batch([
        { type: 'put', key: 'a', value: Buffer.from('v') },
        { type: 'put', key: long, value: Buffer.from('v') }
      ]),
      'LEVEL_INVALID_ARGUMENT',
      'batch with a long key'
    )
    await rejects(
      t,
      db.batch().put(long, Buffer.from('v')).write(),
      'LEVEL_INVALID_ARGUMENT',
      'chained batch with a long key'
    )
    t.is(await db.has('a'), false, 'nothing of the batch was written')
    // Zeroes that nobody touches: this takes addresses, and no memory.
    const huge = Buffer.alloc(2 ** 30 + 1)
    await rejects(t, db.put('huge', huge), 'LEVEL_INVALID_ARGUMENT', 'put of a huge value')
    await rejects(
      t,
      db.batch([{ type: 'put', key: 'huge', value: huge }]),
      'LEVEL_INVALID_ARGUMENT',
      'batch with a huge value'
    )
    t.throws(() => db.batch().put('huge', huge), { code: 'LEVEL_INVALID_ARGUMENT' })
    await rejects(
      t,
      db.get(huge, { keyEncoding: 'buffer' }),
      'LEVEL_INVALID_ARGUMENT',
      'get of a huge key'
    )
    t.is(await db.has('huge'), false)
    await db.put('after', Buffer.from('v'))
    t.is(await db.has('after'), true, 'the database goes on')
  }
)
