'use strict'

const { isNativeError } = require('node:util').types
const binding = require('./binding')

// Operations of one call to the pool: few enough that the event loop gets its turn between two.
const MANY_OPERATIONS = 1000

/**
 * The writes of a database on their way to the pool, where they take effect in the order in which
 * they were made: one call at a time makes those of one turn of the event loop, or those that were
 * made during the call before. Each is a write of its own, and settles a promise of its own.
 *
 * Those with `sync` take their place in that order too. Once they have taken effect they wait for
 * the device, beside the writes behind them; one sync is for all that wait when it begins.
 */
class WriteQueue {
  #database
  #reads
  #groups = []
  #underWay = null
  #unsynced = []
  #syncUnderWay = null

  constructor(database, reads) {
    this.#database = database
    this.#reads = reads
  }

  /** A promise for the write of `size` operations that `add` adds to the writes it is given. */
  write(size, sync, add) {
    // Reads that were called before go to the pool before: a tick comes before a microtask.
    this.#reads.send()
    let group = this.#groups.at(-1)

    if (group === undefined || group.size + size > MANY_OPERATIONS) {
      group = { writes: new binding.Writes(), size: 0, settlers: [] }
      this.#groups.push(group)
      if (this.#groups.length === 1 && this.#underWay === null) process.nextTick(() => this.#next())
    }

    add(group.writes)
    group.size += size
    return new Promise(function (resolve, reject) {
      group.settlers.push({ resolve, reject, sync: sync === true })
    })
  }

  /** A promise for `operations`, `size` in number, as one write. */
  batch(size, sync, operations) {
    return this.write(size, sync, (writes) => writes.batch(operations))
  }

  /** Settles when all writes that were made are done. */
  async drained() {
    this.#next()
    while (this.#underWay !== null || this.#syncUnderWay !== null) {
      await (this.#underWay ?? this.#syncUnderWay)
    }
  }

  #next() {
    if (this.#underWay !== null || this.#groups.length === 0) return
    this.#underWay = this.#writeGroup(this.#groups.shift())
  }

  async #writeGroup({ writes, settlers }) {
    let outcomes

    try {
      outcomes = await this.#database.writeAll(writes)
    } catch (err) {
      // Where the call itself throws: not before `#underWay` is set.
      await undefined
      outcomes = settlers.map(() => err)
    }

    this.#underWay = null
    this.#next()

    settlers.forEach((settler, index) => {
      const outcome = outcomes?.[index]
      // What a write says is no error.
      if (isNativeError(outcome)) settler.reject(outcome)
      else if (settler.sync) this.#unsynced.push({ ...settler, outcome })
      else settler.resolve(outcome)
    })

    this.#nextSync()
  }

  #nextSync() {
    if (this.#syncUnderWay !== null || this.#unsynced.length === 0) return
    this.#syncUnderWay = this.#sync(this.#unsynced.splice(0))
  }

  async #sync(settlers) {
    let settle = (settler) => settler.resolve(settler.outcome)

    try {
      await this.#database.sync()
    } catch (err) {
      await undefined
      settle = (settler) => settler.reject(err)
    }

    this.#syncUnderWay = null
    this.#nextSync()
    settlers.forEach(settle)
  }
}

exports.WriteQueue = WriteQueue
exports.MANY_OPERATIONS = MANY_OPERATIONS
