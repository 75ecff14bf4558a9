'use strict'

// Merge operators of the program.

const test = require('tape')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const { EskerLevel } = require('..')
const { run } = require('./children')
const { newLocation } = require('./directories')
const { codeOf, failure } = require('./failures')

const module_ = (name) => ({ module: path.join(__dirname, 'operators', name) })
const LONGEST = module_('longest.js')
const SET = module_('set.mjs')

test('merges by functions of a module', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location, { mergeOperator: LONGEST })
  await db.merge('word', 'two')
  t.is(db.getSync('word'), 'two')
  await db.put('word', 'three')
  await Promise.all(['one', 'seventeen', '', 'six'].map((word) => db.merge('word', word)))
  t.is(await db.get('word'), 'seventeen')
  t.is(db.getSync('word'), 'seventeen', 'on the event loop')
  t.same(await db.iterator().all(), [['word', 'seventeen']])
  t.is(await db.mergeAndGet('word', 'twenty-seven'), 'twenty-seven')
  const inTransaction = await db.transact(async (transaction) => {
    await transaction.merge('word', 'x')
    return transaction.get('word')
  })
  t.is(inTransaction, 'twenty-seven')
  await db.merge('word', 'a hundred and one')
  await db.compactRange('', '\uffff')
  t.is(await db.get('word'), 'a hundred and one')
  await db.close()

  // Without it, and for reading, and as a URL.
  const without = new EskerLevel(location)
  await without.open()
  await without.close()
  const [url, text] = [pathToFileURL(LONGEST.module), pathToFileURL(LONGEST.module).href]
  for (const options of [{ readOnly: true }, { follower: true }, {}]) {
    for (const module of [url, text]) {
      const again = new EskerLevel(location, { mergeOperator: { module }, ...options })
      t.is(await again.get('word'), 'a hundred and one')
      await again.close()
    }
  }
  const other = new EskerLevel(location, { mergeOperator: SET })
  t.is((await failure(other.open())).cause.code, 'LEVEL_INVALID_ARGUMENT', 'another operator')
})

test('an operator that deletes, checks and fails', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location, { mergeOperator: SET })
  for (const word of ['b', 'a', 'b']) await db.merge('k', word)
  t.is(await db.get('k'), 'a b')
  for (const word of ['-a', '-b']) await db.merge('k', word)
  t.is(await db.get('k'), undefined)
  t.is(await db.has('k'), false)
  for (const word of ['', 'two words']) {
    const refused = await failure(db.merge('k', word))
    t.is(refused.code, 'LEVEL_INVALID_ARGUMENT')
    t.ok(refused.message.includes('RangeError: an operand is one word'), refused.message)
  }
  const texts = {
    throw: 'Error: no merge of throw',
    number: 'must return a string, a Uint8Array, or nothing',
    promise: 'must return a string, a Uint8Array, or nothing',
    unspeakable: 'what was thrown has no text'
  }
  for (const [key, text] of Object.entries(texts)) {
    await db.merge(key, key)
    const failed = await failure(db.get(key))
    t.is(failed.code, 'LEVEL_MERGE_FAILED')
    t.ok(failed.message.includes(text), failed.message)
    t.throws(() => db.getSync(key), { code: 'LEVEL_MERGE_FAILED' })
    await db.del(key)
  }
  await db.merge('k', 'on')
  t.is(await db.get('k'), 'on')
  await db.close()
})

test('an operator whose worker ends', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location, { mergeOperator: SET })
  await db.merge('k', 'a')
  await db.merge('end', 'exit')
  // Calls that wait for it, and later ones.
  const reads = await Promise.allSettled([db.get('end'), db.get('k'), db.get('end')])
  t.is(reads[0].reason?.code, 'LEVEL_MERGE_FAILED')
  t.is(reads[2].reason?.code, 'LEVEL_MERGE_FAILED')
  t.is(await codeOf(db.get('k')), 'LEVEL_MERGE_FAILED')
  t.is(await codeOf(db.merge('k', 'b')), 'LEVEL_INVALID_ARGUMENT', 'no operand can be checked')
  await db.put('other', '1')
  await db.flush()
  t.is(await db.get('other'), '1')
  await db.close()
  await db.open()
  t.is(await db.get('k'), 'a', 'nothing is lost')
  await db.close()
})

test('operators that cannot be had', async function (t) {
  const wrong = [
    7,
    [],
    {},
    { module: 7 },
    { module: 'longest.js' },
    { module: './longest.js' },
    { ...LONGEST, name: 'longest' },
    module_('wrong.js')
  ]
  const db = new EskerLevel(newLocation())
  await db.open()
  for (const mergeOperator of wrong) {
    const opened = await failure(new EskerLevel(newLocation(), { mergeOperator }).open())
    t.ok(opened.cause instanceof TypeError, opened.cause.message)
    const set = await failure(db.setMergeOperator(mergeOperator))
    t.ok(set instanceof TypeError, set.message)
  }
  const absent = await failure(db.setMergeOperator(module_('absent.js')))
  t.ok(absent.message.includes('absent.js'), absent.message)
  t.ok((await failure(db.setMergeOperator(null))) instanceof TypeError)
  await db.close()
  t.is(await codeOf(db.setMergeOperator(SET)), 'LEVEL_DATABASE_NOT_OPEN')
})

test('an operator in the place of another one', async function (t) {
  const db = new EskerLevel(newLocation(), { mergeOperator: 'max' })
  await db.setMergeOperator(SET)
  await db.merge('k', 'b')
  await db.merge('k', 'a')
  t.is(await db.get('k'), 'a b')
  await db.setMergeOperator(LONGEST)
  await db.merge('k', 'long')
  t.is(await db.get('k'), 'long')
  // A close while a worker begins.
  const setting = codeOf(db.setMergeOperator(SET))
  await db.close()
  t.ok([undefined, 'LEVEL_DATABASE_NOT_OPEN'].includes(await setting), 'it is settled')
})

test('workers of operators that are not needed any more', async function (t) {
  const { code, output, errors } = await run('replaced', [newLocation()])
  t.is(code, 0, errors)
  t.is(output, 'refused LEVEL_READ_ONLY a\nthe same a b\nothers 2 a b c\nclosed\n', errors)
})

// The event loop waits for locks that threads of the engine hold while they call the operator.
test('calls on the event loop while operators are called elsewhere', async function (t) {
  const db = new EskerLevel(newLocation(), { mergeOperator: SET, writeBufferSize: 1 << 16 })
  await db.open()
  const padding = 'x'.repeat(200)
  const work = []
  for (let i = 0; i < 2000; i++) {
    work.push(db.merge(`k${i % 50}`, `w${i % 7}${padding}`))
    if (i % 10 === 0) work.push(db.mergeAndGet(`k${i % 50}`, 'y'), db.get(`k${i % 50}`))
    if (i % 500 === 0) work.push(db.compactRange('', '\uffff'), db.flush())
    if (i % 20 === 0) {
      db.getSync(`k${i % 50}`)
      const snapshot = db.snapshot()
      work.push(db.iterator({ snapshot, limit: 3 }).all().then(() => snapshot.close()))
      await null
    }
    if (i % 100 === 0) await Promise.all(work.splice(0))
  }
  await Promise.all(work)
  const values = await db.values().all()
  t.is(values.length, 50)
  t.ok(values.every((value) => value.split(' ').length === 8 || !value.includes('y')), values[0])
  await db.close()
})

test('a process that ends while its operator works, and one that forgets its database', async function (t) {
  for (const how of ['exit', 'end', 'forget', 'throw']) {
    const { code, signal, output, errors } = await run('operator', [newLocation(), how], {
      flags: ['--expose-gc']
    })
    t.is(signal, null, `${how}: ${errors}`)
    t.is(code, how === 'throw' ? 1 : 0, `${how}: ${errors}`)
    t.is(output, how === 'forget' ? 'begun\nended\n' : 'begun\n', how)
  }
})
