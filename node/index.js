'use strict'

const { AbstractLevel } = require('abstract-level')
const ModuleError = require('module-error')
const binding = require('./lib/binding')
const { EskerChanges } = require('./lib/changes')
const { EskerChainedBatch } = require('./lib/chained-batch')
const { encoded, formatOf, timeToLive, wholeNumber } = require('./lib/encoded')
const { EskerIterator, EskerKeyIterator, EskerValueIterator } = require('./lib/iterators')
const { openOptions } = require('./lib/options')
const { rangeOf } = require('./lib/range')
const { ReadQueue } = require('./lib/read-queue')
const { EskerSnapshot, snapshotOf } = require('./lib/snapshot')
const { EskerWatch } = require('./lib/watch')
const { WriteQueue, MANY_OPERATIONS } = require('./lib/write-queue')

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
    compactRange: true,
    expiresAt: true,
    merge: true,
    persist: true,
    renameKeyspace: true,
    setMergeOperator: true,
    setTtl: true,
    touch: true,
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

  _open(options) {
    return this.#database.open(openOptions(this.#location, options))
  }

  async _close() {
    this.#reads.send()
    await this.#writes.drained()
    return this.#database.close()
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

  async setMergeOperator(name) {
    if (typeof name !== 'string') throw new TypeError("The first argument 'name' must be a string")
    return this.#whenOpen(() => this.#database.setMergeOperator(name))
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
      this._assertValidValue(operand)
      const name = this.#key(key, options)
      const data = encoded(this.valueEncoding(options?.valueEncoding).encode(operand))
      const ttl = timeToLive(options?.ttl)
      return this.#writes.write(1, options?.sync, (writes) => writes.merge(name, data, ttl))
    })
  }

  async expiresAt(key, options) {
    return this.#whenOpen(async () => {
      const snapshot = options?.snapshot
      snapshot?.ref()

      try {
        return await this.#database.expiresAt(this.#key(key, options), snapshotOf(options ?? {}))
      } finally {
        snapshot?.unref()
      }
    })
  }

  async touch(key, ttl, options) {
    return this.#whenOpen(() => {
      if (typeof ttl !== 'number')
        throw new TypeError("The second argument 'ttl' must be a number of milliseconds")
      const name = this.#key(key, options)
      return this.#writes.write(1, false, (writes) => writes.touch(name, ttl))
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
      const native = await this.#database.watch(prefix === undefined ? '' : this.#key(prefix, options))
      return this.#resource(native, () => new EskerWatch(this, native))
    })
  }

  async catchUp() {
    return this.#whenOpen(() => this.#database.catchUp())
  }

  getProperty(name) {
    if (typeof name !== 'string') throw new TypeError("The first argument 'name' must be a string")
    this.#assertOpen()
    return this.#database.propertySync(name) ?? undefined
  }

  static async repair(location) {
    return binding.Database.repair(assertLocation(location))
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

  #key(key, options) {
    this._assertValidKey(key)
    return encoded(this.keyEncoding(options?.keyEncoding).encode(key))
  }
}

const assertLocation = function (location) {
  if (typeof location === 'string' && location !== '') return location
  throw new TypeError("The first argument 'location' must be a non-empty string")
}

exports.EskerLevel = EskerLevel
