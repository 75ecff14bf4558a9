'use strict'

// Reads and forgets much more than the process may grow by.

const { EskerLevel } = require('../..')

const MOST_GROWTH = 200 << 20
const db = new EskerLevel(process.argv[2], { valueEncoding: 'buffer', memoryBudget: 32 << 20 })
const value = Buffer.alloc(1 << 20, 7)
const keys = Array.from({ length: 20 }, (_, i) => String(i))

// Reads 60 MiB, and adds 200 MiB to batches.
const round = async function () {
  for (const key of keys) await db.get(key)
  await db.getMany(keys)

  for await (const [, found] of db.iterator()) {
    if (found.length !== value.length) throw new Error('a value is short')
  }

  for (let i = 0; i < 200; i++) {
    db.snapshot()
    db.iterator()
    db.batch().put('x', value)
  }

  await db.close()
  await db.open()
  globalThis.gc()
  await new Promise((resolve) => setImmediate(resolve))
  globalThis.gc()
}

const main = async function () {
  for (const key of keys) await db.put(key, value)
  for (let i = 0; i < 5; i++) await round()
  const before = process.memoryUsage.rss()
  for (let i = 0; i < 10; i++) await round()
  const growth = process.memoryUsage.rss() - before
  if (growth > MOST_GROWTH) throw new Error(`the process has grown by ${growth} bytes`)
  await db.close()
}

main()
