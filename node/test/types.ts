// Compiled, and never run: the types of what a program writes. A line below `@ts-expect-error` must
// not compile.

import {
  EskerLevel,
  type BatchOperation,
  type FollowerLag,
  type KeyspaceSettings,
  type OpenOptions,
  type ProgramMergeOperator
} from 'esker-level'

async function typed(): Promise<void> {
  const db = new EskerLevel('data')
  const options: OpenOptions = {
    createIfMissing: false,
    mergeOperator: 'uint64add',
    ttl: 1000,
    memoryBudget: 1 << 26
  }
  await db.open(options)

  const text: string | undefined = await db.get('key')
  const bytes: Uint8Array | undefined = await db.get<string, Uint8Array>('key', {
    valueEncoding: 'view'
  })
  const at: string | undefined = db.getSync('key')
  const many: Array<string | undefined> = await db.getMany(['a', 'b'])
  const is: boolean = await db.has('key')
  const are: boolean[] = await db.hasMany(['a', 'b'])
  await db.put('key', 'value', { sync: true, ttl: 1000 })
  await db.del('key', { sync: true })

  const operations: Array<BatchOperation<typeof db, string, string>> = [
    { type: 'put', key: 'a', value: '1', ttl: 1000 },
    { type: 'del', key: 'b' }
  ]
  await db.batch(operations, { sync: true })
  await db.batch().put('a', '1').put('b', '2', { ttl: 1000 }).del('c').write({ sync: true })

  const snapshot = db.snapshot()
  const taken: number = snapshot.sequence
  for await (const [key, value] of db.iterator({ gte: 'a', snapshot, highWaterMarkBytes: 1000 })) {
    const pair: [string, string] = [key, value]
    console.log(pair)
  }
  for await (const key of db.keys({ limit: 1 })) console.log(key.length)
  for await (const value of db.values({ reverse: true })) console.log(value.length)
  await snapshot.close()
  await db.clear({ gte: 'a', lt: 'b' })

  await db.merge('key', 'operand', { sync: true })
  const expiry: number | undefined = await db.expiresAt('key')
  const had: boolean = (await db.touch('key', 1000)) && (await db.persist('key'))
  const size: number = await db.approximateSize('a', 'b')
  await db.expireAt('key', Date.now() + 1000)
  const there: string | undefined = await db.putIfAbsent('key', 'value', { ttl: 1000, sync: true })
  const { swapped, current } = await db.compareAndSwap('key', 'value', undefined)
  const swap: [boolean, string | undefined] = [swapped, current]
  const merged: string | undefined = await db.mergeAndGet('key', 'operand')
  const raised = await db.mergeAndGet<string, Uint8Array>('key', new Uint8Array(8), {
    valueEncoding: 'view'
  })
  const gone: string | undefined = await db.take('key', { sync: true })
  const first: [string, string] | undefined = await db.popFirst()
  const counted: number =
    (await db.count()) + (await db.count({ gte: 'a', snapshot: db.snapshot() }))
  const loaded: number = await db.ingest([['a', '1']])
  await db.ingest(new Map([['b', '2']]))
  await db.ingest<number, number>([[1, 2]], { keyEncoding: 'json', valueEncoding: 'json' })
  const length: number = await db.transact(
    async (transaction) => {
      const value: string | undefined = await transaction.get('key')
      await transaction.put('key', 'value', { ttl: 1000 })
      for await (const [key, value] of transaction.entries({ gte: 'a', reverse: true, limit: 1 }))
        console.log(key.length, value.length)
      return value?.length ?? 0
    },
    { attempts: 3, sync: true }
  )
  const transaction = await db.transaction()
  await transaction.clear({ gte: 'a', lt: 'b' })
  await transaction.commit({ sync: true })
  await transaction[Symbol.asyncDispose]()
  await db.flush()
  await db.checkpoint('copy', { copy: true })
  await db.verify()
  for (const name of await db.keyspaces()) await db.dropKeyspace(name)
  await EskerLevel.destroy('other')
  console.log(there, swap, merged, raised?.byteLength, gone, first, counted, loaded, length)
  await db.renameKeyspace('other')
  await db.compactRange('a', 'b')
  const property: string | undefined = db.getProperty('esker.health.writable')
  await EskerLevel.repair(db.location)
  await EskerLevel.verify(db.location)

  const kept: OpenOptions = { keepChanges: { bytes: 1 << 20 } }
  const follower = new EskerLevel('data', { follower: true, keepChanges: 'as-before' })
  const lag: FollowerLag | undefined = await follower.lag()
  console.log(lag?.batches, lag?.logBytes, lag?.sequence)
  const caughtUp: number = await follower.catchUp()
  const changes = await db.changes({ from: caughtUp, onlyDurable: true })
  for await (const batch of changes) {
    for (const change of batch) {
      if (change.type === 'put') console.log(change.key.length, change.value.length, kept)
      if (change.type === 'clear') await db.clear(change)
      if (change.type === 'alterKeyspace') console.log(change.formerName, change.ttl)
      // @ts-expect-error: the name is that of the keyspace, and is no setting
      if (change.type === 'alterKeyspace') console.log(change.name)
    }
  }
  const id: number = db.keyspaceId
  const more: boolean = (await changes.wait()) || (await changes.wait(1000))
  const next: string | undefined = (await changes.next())?.[0]?.keyspace
  const settings: KeyspaceSettings | undefined = await changes.keyspaceSettings(1, changes.position)
  const was = [settings?.name, settings?.comparator, settings?.mergeOperator, settings?.ttl]
  await changes.close()
  const raw = await db.changes<Buffer, Buffer>({ keyEncoding: 'buffer', valueEncoding: 'buffer' })
  const change = (await raw.next())?.[0]
  if (change?.type === 'merge') console.log(change.operand.readUInt8(), change.isFirst)
  const watch = await db.watch('a')
  const written: boolean = await watch.wait(0)
  await Promise.all([watch[Symbol.asyncDispose](), changes[Symbol.asyncDispose]()])
  await watch.close()
  console.log(id, more, next, was, written, await db.watch())

  const numbers = new EskerLevel<number, { name: string }>('data', { valueEncoding: 'json' })
  await numbers.put(1, { name: 'ada' })
  const name: string | undefined = (await numbers.get(1))?.name
  const sublevel = numbers.sublevel<string, string>('sub', { valueEncoding: 'utf8' })
  await sublevel.put('a', '1')
  console.log(text, bytes, at, taken, many, is, are, expiry, had, size, property, name)

  const longest: ProgramMergeOperator = {
    name: 'longest',
    fullMerge: (key, existing, operands) => existing ?? operands[0] ?? key.toString(),
    checkOperand(operand) {
      if (operand.length === 0) throw new RangeError('empty')
    }
  }
  const module = new URL('file:///longest.mjs')
  await new EskerLevel('data', { mergeOperator: { module } }).setMergeOperator({ module: '/a.js' })
  console.log(longest)

  // @ts-expect-error: an operator needs a module
  console.log(new EskerLevel('data', { mergeOperator: longest }))
  // @ts-expect-error: a value of another type
  await numbers.put(1, 'ada')
  // @ts-expect-error: no location
  console.log(new EskerLevel())
  // @ts-expect-error: an unknown operator
  console.log(new EskerLevel('data', { mergeOperator: 'product' }))
  // @ts-expect-error: a time that is no number
  await db.put('key', 'value', { ttl: '1s' })
  // @ts-expect-error: a delete has no value
  if (change?.type === 'del') console.log(change.value)
  // @ts-expect-error: neither bytes nor a time
  console.log(new EskerLevel('data', { keepChanges: 1 << 20 }))
  // @ts-expect-error: a time that is no number
  await changes.wait('1s')
  // @ts-expect-error: no time
  await db.touch('key')
  // @ts-expect-error: a value of another type
  await db.putIfAbsent('key', 1)
  // @ts-expect-error: no new value
  await db.compareAndSwap('key', 'value')
  // @ts-expect-error: a key without a value
  await db.ingest(['a'])
  // @ts-expect-error: no function
  await db.transact(transaction)
}

console.log(typed)
