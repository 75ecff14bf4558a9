'use strict'

// Worker threads, one after the other, that are the only ones to load the library: Node unloads it
// when each ends, with its database open.

const { isMainThread, Worker, workerData } = require('node:worker_threads')

const useDatabase = async function () {
  const { EskerLevel } = require('../..')
  const db = new EskerLevel(workerData)
  await db.put('a', 'b')
  if ((await db.get('a')) !== 'b') throw new Error('nothing was written')
  process.exit(0)
}

const main = async function () {
  for (let i = 0; i < 10; i++) {
    const worker = new Worker(__filename, { workerData: `${process.argv[2]}-${i}` })
    const code = await new Promise((resolve) => worker.on('exit', resolve))
    if (code !== 0) throw new Error(`the worker ended with ${code}`)
  }
}

if (isMainThread) main()
else useDatabase()
