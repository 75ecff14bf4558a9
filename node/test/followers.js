'use strict'

// Databases that are read behind their writer.

const test = require('tape')
const { fork } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const { EskerLevel } = require('..')
const { program } = require('./children')
const { newLocation } = require('./directories')
const { failure, codeOf } = require('./failures')

/** Another process that writes what it is told. */
const startWriter = async function (t, location) {
  const child = fork(program('writer'), [location])
  t.is((await once(child, 'message'))[0], 'done')

  return {
    async write(body) {
      child.send(body)
      const [answer] = await once(child, 'message')
      if (answer !== 'done') throw new Error(answer)
    },
    async kill() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  }
}

test('another process writes', async function (t) {
  const location = newLocation()
  const writer = await startWriter(t, location)
  await writer.write("await db.put('a', '1')")
  const db = new EskerLevel(location, { follower: true })
  t.is(await db.get('a'), '1')
  const changes = await db.changes()
  const watch = await db.watch('')
  t.is((await changes.next())[0].key, 'a')
  await writer.write("await db.put('b', '2')")
  t.is(await db.get('b'), undefined)
  t.is(await changes.next(), undefined)
  const snapshot = db.snapshot()
  const iterator = db.iterator()
  const waiting = watch.wait()
  const { batches, logBytes, sequence: last } = await db.lag()
  t.is(batches, 1)
  t.ok(logBytes > 0)
  const sequence = await db.catchUp()
  t.is(sequence, last)
  t.same(await db.lag(), { batches: 0, logBytes: 0, sequence })
  t.is(await waiting, true)
  t.is(await db.get('b'), '2')
  t.is(await db.get('b', { snapshot }), undefined)
  t.same(await iterator.all(), [['a', '1']])
  const [change] = await changes.next()
  t.same([change.key, change.sequence], ['b', sequence])
  await snapshot.close()

  // Through flushes, a compaction, merges, another name, the death of the writer and its restart.
  await writer.write(`
    for (let i = 0; i < 20; i++) {
      const puts = Array.from({ length: 1000 }, (_, j) => ({
        type: 'put', key: 'k' + i + ' ' + j, value: 'v'.repeat(100)
      }))
      await db.batch(puts)
    }
    await db.compactRange('', '\\uffff')
    await db.merge('m', '5')
    await db.renameKeyspace('people')`)
  const after = await db.catchUp()
  t.ok(after > sequence)
  t.is(await db.catchUp(), after)
  t.is((await db.keys().all()).length, 20003)
  t.is(await db.get('m'), '5')
  await writer.kill()
  t.is(await db.catchUp(), after)
  const again = await startWriter(t, location)
  await again.write("await db.close(); await db.open({ keyspace: 'people' }); await db.put('c', '3')")
  await db.catchUp()
  t.is(await db.get('c'), '3')
  await again.kill()

  for (const write of [db.put('a', '2'), db.del('a'), db.clear(), db.merge('m', '9')])
    t.is(await codeOf(write), 'LEVEL_READ_ONLY')
  t.is(await codeOf(db.renameKeyspace('other')), 'LEVEL_READ_ONLY')
  await db.close()
})

test('one of many in the process of the writer', async function (t) {
  const location = newLocation()
  const writer = new EskerLevel(location)
  await writer.put('n', '0')
  const followers = Array.from({ length: 5 }, () => new EskerLevel(location, { follower: true }))
  await Promise.all(followers.map((db) => db.open()))
  for (let i = 1; i <= 20; i++) {
    await writer.put('n', String(i))
    await Promise.all(followers.map((db) => db.catchUp()))
    const found = await Promise.all(followers.map((db) => db.get('n')))
    t.same(found, Array(5).fill(String(i)))
  }
  await Promise.all(followers.map((db) => db.close()))
  await writer.close()
})

test('what cannot be followed', async function (t) {
  const location = newLocation()
  const db = new EskerLevel(location, { follower: true })
  const missing = await failure(db.open())
  t.is(missing.cause.code, 'LEVEL_MISSING', missing.cause.message)
  t.notOk(fs.existsSync(location), 'nothing was created')
  const writer = new EskerLevel(location, { keyspace: 'other' })
  await writer.open()
  t.is((await failure(db.open())).cause.code, 'LEVEL_MISSING', 'it has no such keyspace')
  t.is(await codeOf(writer.catchUp()), 'LEVEL_INVALID_ARGUMENT', 'a writer')
  t.is(await codeOf(writer.lag()), 'LEVEL_INVALID_ARGUMENT', 'a writer')
  await db.open({ keyspace: 'other' })
  await db.close()
  t.is(await codeOf(db.catchUp()), 'LEVEL_DATABASE_NOT_OPEN')
  t.is(await codeOf(db.lag()), 'LEVEL_DATABASE_NOT_OPEN')
  await writer.close()
  await db.open({ follower: false, readOnly: true, keyspace: 'other' })
  t.is(await codeOf(db.catchUp()), 'LEVEL_INVALID_ARGUMENT')
  await db.close()
  for (const follower of ['yes', 1, {}]) {
    const err = await failure(new EskerLevel(location, { follower }).open())
    t.ok(err.cause instanceof TypeError, err.cause.message)
  }
})

test('a close beside calls under way', async function (t) {
  const location = newLocation()
  const writer = new EskerLevel(location)
  await writer.put('a', '1')
  const db = new EskerLevel(location, { follower: true })
  for (let round = 0; round < 20; round++) {
    await db.open()
    const calls = [db.catchUp(), db.catchUp(), db.get('a'), db.catchUp()]
    await writer.put('a', String(round))
    await db.close()
    const results = await Promise.allSettled(calls)
    t.ok(
      results.every((result) => result.status === 'fulfilled'),
      'calls that were made before are done'
    )
  }
  // It has held no lock.
  await writer.close()
  await writer.open()
  await writer.close()
})
