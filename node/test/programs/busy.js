'use strict'

// Fills a database, so that calls of all kinds are under way when the promise is settled, with one
// write that was acknowledged. Returns what is to be kept.

exports.fill = async function (db) {
  const ignore = () => {}
  const value = Buffer.alloc(100000)
  await db.put('acknowledged', '1')

  for (let i = 0; i < 300; i++) {
    db.put(`pending ${i}`, 'v'.repeat(1000)).catch(ignore)
    db.put(`synced ${i}`, 'v', { sync: true }).catch(ignore)
    db.get(`pending ${i}`).catch(ignore)
    db.batch([{ type: 'put', key: `batch ${i}`, value, valueEncoding: 'buffer' }]).catch(ignore)
    db.iterator({ limit: 10 }).all().catch(ignore)
  }

  db.compactRange('', '\uffff').catch(ignore)
  return [db.snapshot(), db.iterator(), db.batch().put('a', 'b')]
}

// Waits for writes that never come, which keeps a process or a worker thread that could end by itself.
exports.wait = async function (db) {
  const ignore = () => {}
  const [changes, watch] = await Promise.all([db.changes(), db.watch('never written')])
  ;(async function () {
    for await (const batch of changes) if (batch.length === 0) return
  })().catch(ignore)
  watch.wait().catch(ignore)
  watch.wait(3600 * 1000).catch(ignore)
}
