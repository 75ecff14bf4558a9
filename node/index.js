'use strict'

const { AbstractLevel } = require('abstract-level')
const ModuleError = require('module-error')
const binding = require('./lib/binding')
const { EskerChanges } = require('./lib/changes')
const { EskerChainedBatch } = require('./lib/chained-batch')
const {
  decoded,
  encoded,
  formatOf,
  secondNumber,
  timeToLive,
  wholeNumber
} = require('./lib/encoded')
const { EskerIterator, EskerKeyIterator, EskerValueIterator } = require('./lib/iterators')
const { Operators, operatorOf } = require('./lib/operators')
const { openOptions } = require('./lib/options')
const { encodedRange, rangeOf } = require('./lib/range')
const { ReadQueue } = require('./lib/read-queue')
const { EskerSnapshot, snapshotOf } = require('./lib/snapshot')
const { EskerTransaction } = require('./lib/transaction')
const { EskerWatch } = require('./lib/watch')
const { WriteQueue, MANY_OPERATIONS } = require('./lib/write-queue')

// Runs of a transaction that meets another writer.
const ATTEMPTS = 10

const MANIFEST = {
  encodings: { buffer: true, utf8: true, view: true },
  implicitSnapshots: true,
  explicitSnapshots: true,
  has: true,
  getSync: true,
  seek: true,
  createIfMissing: true,
  errorIfExists: true,
  permanence: true,
  additionalMethods: {
    approximateCount: true,
    approximateSize: true,
    catchUp: true,
    changes: true,
    checkpoint: true,
    compactRange: true,
    compareAndSwap: true,
    count: true,
    dropKeyspace: true,
    expireAt: true,
    expiresAt: true,
    flush: true,
    ingest: true,
    keyspaces: true,
    lag: true,
    merge: true,
    mergeAndGet: true,
    persist: true,
    popFirst: true,
    putIfAbsent: true,
    renameKeyspace: true,
    setMergeOperator: true,
    setTtl: true,
    take: true,
    touch: true,
    transact: true,
    transaction: true,
    verify: true,
    watch: true
  },
  signals: { iterators: true }
}

// The private methods need not be asynchronous functions: `abstract-level` calls them in one, which
// makes a rejection of what they throw.
class EskerLevel extends AbstractLevel {
  #location
  #database = new binding.Database()
  #reads = new ReadQueue(this.#database)
  #writes = new WriteQueue(this.#database, this.#reads)
  #operators = new Operators(this)

  constructor(location, options) {
    super(MANIFEST, options)
    this.#location = assertLocation(location)
  }

  get location() {
    return this.#location
  }

  get keyspaceId() {
    this.#assertOpen()
    return this.#database.keyspaceIdSync()
  }

  async _open(options) {
    try {
      const given = operatorOf(options.mergeOperator, "The option 'mergeOperator'")
      const operator = await this.#operators.begin(given)
      await this.#database.open(openOptions(this.#location, options, operator))
    } catch (err) {
      await this.#operators.end()
      throw err
    }
  }

  async _close() {
    this.#reads.send()
    await this.#writes.drained()

    try {
      await this.#database.close()
    } finally {
      await this.#operators.end()
    }
  }

  _get(key, options) {
    const [data, format, snapshot] = [
      encoded(key),
      formatOf(options.valueEncoding),
      snapshotOf(options)
    ]
    const alone = () => this.#database.get(data, format, snapshot)
    if (snapshot !== undefined) return alone()
    return this.#reads.read(alone, (reads) => reads.get(data, format))
  }

  _getSync(key, options) {
    return this.#database.getSync(
      encoded(key),
      formatOf(options.valueEncoding),
      snapshotOf(options)
    )
  }

  _getMany(keys, options) {
    return this.#database.getMany(
      keys.map(encoded),
      formatOf(options.valueEncoding),
      snapshotOf(options)
    )
  }

  _has(key, options) {
    const [data, snapshot] = [encoded(key), snapshotOf(options)]
    const alone = () => this.#database.has(data, snapshot)
    if (snapshot !== undefined) return alone()
    return this.#reads.read(alone, (reads) => reads.has(data))
  }

  _hasMany(keys, options) {
    return this.#database.hasMany(keys.map(encoded), snapshotOf(options))
  }

  _put(key, value, options) {
    const [data, ttl] = [encoded(value), timeToLive(options.ttl)]
    return this.#writes.write(1, options.sync, (writes) => writes.put(encoded(key), data, ttl))
  }

  _del(key, options) {
    return this.#writes.write(1, options.sync, (writes) => writes.del(encoded(key)))
  }

  _batch(operations, options) {
    const native = new binding.Operations()

    for (const op of operations) {
      if (op.type === 'put') {
        native.put(encoded(op.key), encoded(op.value), timeToLive(op.ttl))
      } else {
        native.del(encoded(op.key))
      }
    }

    return this.#writes.batch(operations.length, options.sync, native)
  }

  _chainedBatch() {
    return new EskerChainedBatch(this, this.#writes)
  }

  _clear(options) {
    const { lower, upper, flags } = rangeOf(options)
    const snapshot = snapshotOf(options)

    if (options.limit === -1 && snapshot === undefined) {
      return this.#writes.write(1, false, (writes) => writes.clear(lower, upper, flags))
    }

    return this.#writes.write(MANY_OPERATIONS, false, (writes) =>
      writes.clearKeys(lower, upper, flags, options.limit, snapshot)
    )
  }

  _iterator(options) {
    return new EskerIterator(this, this.#database, options)
  }

  _keys(options) {
    return new EskerKeyIterator(this, this.#database, options)
  }

  _values(options) {
    return new EskerValueIterator(this, this.#database, options)
  }

  _snapshot(options) {
    return new EskerSnapshot(this.#database.snapshot(), options)
  }

  async approximateSize(start, end, options) {
    return this.#whenOpen(() => {
      return this.#database.approximateSize(this.#key(start, options), this.#key(end, options))
    })
  }

  async approximateCount(start, end, options) {
    return this.#whenOpen(() => {
      return this.#database.approximateCount(this.#key(start, options), this.#key(end, options))
    })
  }

  async setTtl(ttl) {
    if (ttl !== true && typeof ttl !== 'number')
      throw new TypeError("The first argument 'ttl' must be true or a number of milliseconds")
    return this.#whenOpen(() => this.#database.setTtl(ttl === true ? undefined : ttl))
  }

  async setMergeOperator(operator) {
    const shown = "The first argument 'operator'"
    if (operator === undefined || operator === null)
      throw new TypeError(`${shown} must be a string or an object`)
    const given = operatorOf(operator, shown)
    return this.#whenOpen(async () => {
      const { name, served } = await this.#operators.begin(given)
      // It may have been closed meanwhile.
      this.#assertOpen()
      return this.#database.setMergeOperator(name, served)
    })
  }

  async renameKeyspace(name) {
    if (typeof name !== 'string') throw new TypeError("The first argument 'name' must be a string")
    return this.#whenOpen(() => this.#database.renameKeyspace(name))
  }

  async compactRange(start, end, options) {
    return this.#whenOpen(() => {
      return this.#database.compactRange(this.#key(start, options), this.#key(end, options))
    })
  }

  async merge(key, operand, options) {
    return this.#whenOpen(() => {
      const [data, name] = [this.#value(operand, options), this.#key(key, options)]
      const ttl = timeToLive(options?.ttl)
      return this.#writes.write(1, options?.sync, (writes) => writes.merge(name, data, ttl))
    })
  }

  async putIfAbsent(key, value, options) {
    return this.#whenOpen(() => {
      const [name, data] = [this.#key(key, options), this.#value(value, options)]
      const ttl = timeToLive(options?.ttl)
      return this.#writeAndRead(options, (writes, format) =>
        writes.putIfAbsent(name, data, ttl, format)
      )
    })
  }

  async compareAndSwap(key, expected, value, options) {
    return this.#whenOpen(async () => {
      const name = this.#key(key, options)
      const [old, data] = [expected, value].map((it) =>
        it === undefined ? undefined : this.#value(it, options)
      )
      const encoding = this.valueEncoding(options?.valueEncoding)
      const [ttl, format] = [timeToLive(options?.ttl), formatOf(encoding.format)]
      const { swapped, current } = await this.#writes.write(1, options?.sync, (writes) =>
        writes.compareAndSwap(name, old, data, ttl, format)
      )
      return { swapped, current: decoded(encoding, current) }
    })
  }

  async mergeAndGet(key, operand, options) {
    return this.#whenOpen(() => {
      const [name, data] = [this.#key(key, options), this.#value(operand, options)]
      const ttl = timeToLive(options?.ttl)
      return this.#writeAndRead(options, (writes, format) =>
        writes.mergeAndGet(name, data, ttl, format)
      )
    })
  }

  async take(key, options) {
    return this.#whenOpen(() => {
      const name = this.#key(key, options)
      return this.#writeAndRead(options, (writes, format) => writes.takeValue(name, format))
    })
  }

  async popFirst(options) {
    return this.#whenOpen(async () => {
      const keys = this.keyEncoding(options?.keyEncoding)
      const values = this.valueEncoding(options?.valueEncoding)
      const entry = await this.#writes.write(1, options?.sync, (writes) =>
        writes.popFirst(formatOf(keys.format), formatOf(values.format))
      )
      return entry && [decoded(keys, entry[0]), decoded(values, entry[1])]
    })
  }

  async count(options) {
    return this.#whenOpen(async () => {
      const encoding = this.keyEncoding(options?.keyEncoding)
      const { lower, upper, flags } = encodedRange(options ?? {}, encoding)
      return this.#atSnapshot(options, (snapshot) =>
        this.#database.count(lower, upper, flags, snapshot)
      )
    })
  }

  async transaction() {
    return this.#whenOpen(async () => {
      const native = await this.#database.transaction()
      return this.#resource(native, () => new EskerTransaction(this, native, this.#writes))
    })
  }

  async transact(body, options) {
    const { attempts = ATTEMPTS, sync } = options ?? {}
    if (typeof body !== 'function')
      throw new TypeError("The first argument 'body' must be a function")
    wholeNumber("The option 'attempts'", attempts)

    for (let left = attempts; ; left--) {
      const transaction = await this.transaction()
      let isCommit = false

      try {
        const result = await body(transaction)
        isCommit = true
        await transaction.commit({ sync })
        return result
      } catch (err) {
        await transaction.close()
        if (!isCommit || err.code !== 'LEVEL_CONFLICT' || left <= 1) throw err
      }
    }
  }

  async ingest(entries, options) {
    const isIterable = typeof (entries?.[Symbol.asyncIterator] ?? entries?.[Symbol.iterator])
    if (isIterable !== 'function' || typeof entries === 'string')
      throw new TypeError("The first argument 'entries' must be an iterable of keys with values")

    return this.#whenOpen(async () => {
      const native = new binding.Operations()

      for await (const entry of entries) {
        if (!Array.isArray(entry) || entry.length !== 2)
          throw new TypeError('An entry must be an array of a key and a value')
        native.put(this.#key(entry[0], options), this.#value(entry[1], options))
      }

      return this.#database.ingest(native)
    })
  }

  async expiresAt(key, options) {
    return this.#whenOpen(async () => {
      const name = this.#key(key, options)
      return this.#atSnapshot(options, (snapshot) => this.#database.expiresAt(name, snapshot))
    })
  }

  async touch(key, ttl, options) {
    return this.#whenOpen(() => {
      const [time, name] = [secondNumber('ttl', ttl), this.#key(key, options)]
      return this.#writes.write(1, false, (writes) => writes.touch(name, time))
    })
  }

  async expireAt(key, at, options) {
    return this.#whenOpen(() => {
      const [time, name] = [secondNumber('at', at), this.#key(key, options)]
      return this.#writes.write(1, false, (writes) => writes.expireAt(name, time))
    })
  }

  async persist(key, options) {
    return this.#whenOpen(() => {
      const name = this.#key(key, options)
      return this.#writes.write(1, false, (writes) => writes.persist(name))
    })
  }

  async changes(options) {
    const { from = 0, onlyDurable = false, keyEncoding, valueEncoding } = options ?? {}
    wholeNumber("The option 'from'", from)
    if (typeof onlyDurable !== 'boolean')
      throw new TypeError("The option 'onlyDurable' must be a boolean")

    return this.#whenOpen(async () => {
      const [keys, values] = [this.keyEncoding(keyEncoding), this.valueEncoding(valueEncoding)]
      const formats = [formatOf(keys.format), formatOf(values.format)]
      const native = await this.#database.changes(from, onlyDurable, ...formats)
      return this.#resource(native, () => new EskerChanges(this, native, keys, values))
    })
  }

  async watch(prefix, options) {
    return this.#whenOpen(async () => {
      const native = await this.#database.watch(
        prefix === undefined ? '' : this.#key(prefix, options)
      )
      return this.#resource(native, () => new EskerWatch(this, native))
    })
  }

  async catchUp() {
    return this.#whenOpen(() => this.#database.catchUp())
  }

  async lag() {
    return this.#whenOpen(() => this.#database.lag())
  }

  async flush() {
    return this.#whenOpen(() => this.#database.flush())
  }

  async checkpoint(directory, options) {
    assertPath("The first argument 'directory'", directory)
    const { copy = false } = options ?? {}
    if (typeof copy !== 'boolean') throw new TypeError("The option 'copy' must be a boolean")
    return this.#whenOpen(() => this.#database.checkpoint(directory, copy))
  }

  async verify() {
    return this.#whenOpen(() => this.#database.verify())
  }

  async keyspaces() {
    return this.#whenOpen(() => this.#database.keyspaces())
  }

  async dropKeyspace(name) {
    if (typeof name !== 'string') throw new TypeError("The first argument 'name' must be a string")
    return this.#whenOpen(() => this.#database.dropKeyspace(name))
  }

  getProperty(name) {
    if (typeof name !== 'string') throw new TypeError("The first argument 'name' must be a string")
    this.#assertOpen()
    return this.#database.propertySync(name) ?? undefined
  }

  static async verify(location) {
    return binding.Database.verifyDirectory(assertLocation(location))
  }

  static async repair(location) {
    return binding.Database.repair(assertLocation(location))
  }

  static async destroy(location) {
    return binding.Database.destroy(assertLocation(location))
  }

  async #whenOpen(call) {
    if (this.status === 'opening') return this.deferAsync(() => this.#whenOpen(call))
    this.#assertOpen()
    return call()
  }

  #assertOpen() {
    if (this.status !== 'open') {
      throw new ModuleError('Database is not open', { code: 'LEVEL_DATABASE_NOT_OPEN' })
    }
  }

  /** What belongs to the database, unless that was closed meanwhile: then nothing would end it. */
  #resource(native, make) {
    if (this.status === 'open') return make()
    native.close()
    this.#assertOpen()
  }

  /** A write whose outcome is a value, or none. */
  async #writeAndRead(options, add) {
    const encoding = this.valueEncoding(options?.valueEncoding)
    const format = formatOf(encoding.format)
    const value = await this.#writes.write(1, options?.sync, (writes) => add(writes, format))
    return decoded(encoding, value)
  }

  /** A read of the snapshot that options name, which is kept until that is done. */
  async #atSnapshot(options, read) {
    const snapshot = options?.snapshot
    snapshot?.ref()

    try {
      return await read(snapshotOf(options ?? {}))
    } finally {
      snapshot?.unref()
    }
  }

  #value(value, options) {
    this._assertValidValue(value)
    return encoded(this.valueEncoding(options?.valueEncoding).encode(value))
  }

  #key(key, options) {
    this._assertValidKey(key)
    return encoded(this.keyEncoding(options?.keyEncoding).encode(key))
  }
}

const assertLocation = function (location) {
  if (typeof location === 'string' && location !== '') return location
  throw new TypeError("The first argument 'location' must be a non-empty string")
}

const assertPath = function (what, path) {
  if (typeof path !== 'string' || path === '')
    throw new TypeError(`${what} must be a non-empty string`)
}

exports.EskerLevel = EskerLevel
