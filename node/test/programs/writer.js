'use strict'

// Writes what its parent says: each message is the body of an asynchronous function of the database.

const { EskerLevel } = require('../..')

const db = new EskerLevel(process.argv[2], {
  keepChanges: { bytes: 1 << 20 },
  mergeOperator: 'max',
  writeBufferSize: 1 << 20
})
const AsyncFunction = (async () => {}).constructor

process.on('message', async function (body) {
  try {
    await new AsyncFunction('db', body)(db)
    process.send('done')
  } catch (err) {
    process.send(`${err.stack}`)
  }
})

db.open().then(() => process.send('done'))
