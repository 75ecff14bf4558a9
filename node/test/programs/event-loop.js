'use strict'

// With one thread in the pool, which reads from a pipe in which nothing comes: no call can be done,
// and the event loop turns. Prints how many calls there were.

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const { EskerLevel } = require('../..')

const location = process.argv[2]

const main = async function () {
  const db = new EskerLevel(location, { keepChanges: { bytes: 1 << 20 } })
  await db.put('a', '1')
  const follower = new EskerLevel(location, { follower: true })
  await follower.open()
  const changes = await db.changes()
  const pipe = `${location}.pipe`
  execFileSync('mkfifo', [pipe])
  const watch = await db.watch('a')
  // One for each call: a second one would wait for the first.
  const ofTransactions = [
    (transaction) => transaction.get('a'),
    (transaction) => transaction.getMany(['a']),
    (transaction) => transaction.has('a'),
    (transaction) => transaction.expiresAt('a'),
    (transaction) => transaction.count(),
    (transaction) => transaction.entries().next(),
    (transaction) => transaction.put('t', '2'),
    (transaction) => transaction.del('t'),
    (transaction) => transaction.clear({ gt: 'x' }),
    (transaction) => transaction.popFirst(),
    (transaction) => transaction.rollback(),
    (transaction) => transaction.commit()
  ]
  const transactions = await Promise.all(ofTransactions.map(() => db.transaction()))
  const blocked = fs.promises.readFile(pipe)

  const calls = [
    db.put('b', '2'),
    db.put('b', '2', { sync: true }),
    db.get('a'),
    db.getMany(['a']),
    db.has('a'),
    db.hasMany(['a']),
    db.del('c'),
    db.batch([{ type: 'del', key: 'd' }]),
    db.batch().del('d').write(),
    db.clear({ gt: 'x' }),
    db.clear({ gt: 'x', limit: 1 }),
    db.iterator().next(),
    db.iterator().nextv(10),
    db.iterator().all(),
    db.approximateSize('a', 'b'),
    db.compactRange('a', 'b'),
    db.expiresAt('a'),
    db.renameKeyspace('other'),
    db.changes(),
    db.watch('a'),
    db.setTtl(true),
    db.putIfAbsent('a', '2'),
    db.compareAndSwap('a', '2', '3'),
    db.take('c'),
    db.count(),
    db.ingest([['z', '1']]),
    db.flush(),
    db.checkpoint(`${location}-copy`),
    db.verify(),
    db.keyspaces(),
    db.dropKeyspace('none').catch(() => {}),
    db.transaction(),
    db.transact((transaction) => transaction.get('a')),
    ...ofTransactions.map((call, index) => call(transactions[index])),
    EskerLevel.destroy(`${location}-none`),
    changes.next(),
    follower.catchUp(),
    EskerLevel.repair(`${location}-missing`).catch(() => {}),
    new EskerLevel(`${location}-other`).open()
  ]
  let settled = 0
  for (const call of calls) call.then(() => settled++)

  for (let i = 0; i < 1000; i++) await new Promise((resolve) => setImmediate(resolve))
  if (settled !== 0) throw new Error(`${settled} calls were made on the event loop`)
  if (db.getSync('a') !== '1') throw new Error('getSync() waits for the pool')

  // A wait for a write needs no thread of the pool.
  if (await watch.wait(1)) throw new Error('a wait has found what was not written')

  fs.writeFileSync(pipe, 'go on')
  await blocked
  await Promise.all(calls)
  await db.close()
  console.log(settled)
}

main()
