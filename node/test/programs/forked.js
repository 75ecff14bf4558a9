'use strict'

// What `processes.js` forks while it has a database open.

const { EskerLevel } = require('../..')

const location = process.argv[2]

const keys = async function (options) {
  const db = new EskerLevel(location, options)
  await db.open()
  const keys = await db.keys().all()
  await db.close()
  return keys
}

process.on('message', async function (message) {
  process.send(await keys({ readOnly: message === 'read' }))
})

keys().catch((err) => {
  const isHolderNamed = `${err.cause?.message}`.includes(String(process.ppid))
  process.send({ code: err.cause?.code ?? err.code, isHolderNamed })
})
