'use strict'

// Forgets a database, and what belongs to it, in different orders, and collects the garbage after
// each: what nothing refers to any more releases the lock. Prints the number of orders.

const { EskerLevel } = require('../..')

const location = process.argv[2]
const NAMES = ['db', 'snapshot', 'iterator', 'batch', 'keys']

const turn = () => new Promise((resolve) => setImmediate(resolve))

const collect = async function () {
  for (let i = 0; i < 5; i++) {
    globalThis.gc()
    await turn()
  }
}

// A wait that has ended keeps nothing. The reader and the watch are locals of a function that has
// ended: in the one that forgets they would keep the database to its end.
const readAndWait = async function (db) {
  const [changes, watch] = await Promise.all([db.changes(), db.watch('a')])
  await changes.next()
  await Promise.all([changes.wait(), watch.wait(0)])
}

const forget = async function (order) {
  const held = { db: new EskerLevel(location, { keepChanges: { bytes: 1 << 20 } }) }
  await held.db.open()
  await held.db.batch([
    { type: 'put', key: 'a', value: '1' },
    { type: 'put', key: 'b', value: '2' }
  ])
  held.snapshot = held.db.snapshot()
  held.iterator = held.db.iterator()
  held.batch = held.db.batch().put('c', '3')
  held.keys = held.db.keys({ snapshot: held.snapshot })
  await held.iterator.next()
  await readAndWait(held.db)
  held.db.get('a')

  for (const name of order) {
    delete held[name]
    await collect()
  }
}

const isFree = async function () {
  const db = new EskerLevel(location)

  try {
    await db.open()
  } catch (err) {
    if (err.cause.code !== 'LEVEL_LOCKED') throw err
    return false
  }

  await db.close()
  return true
}

const permutations = function (names) {
  if (names.length < 2) return [names]
  return names.flatMap(function (first) {
    const others = names.filter((name) => name !== first)
    return permutations(others).map((rest) => [first, ...rest])
  })
}

const main = async function () {
  const orders = permutations(NAMES).filter((_, index) => index % 5 === 0)

  for (const order of orders) {
    await forget(order)
    let attempts = 0
    do {
      if (++attempts > 100) throw new Error(`the lock was not released: ${order}`)
      await collect()
    } while (!(await isFree()))
  }

  console.log(orders.length)
}

main()
