'use strict'

const binding = require('./binding')

// Operations of one call to the pool: few enough that the event loop gets its turn between two.
const MOST_OPERATIONS = 1000

/**
 * Single writes on their way to the pool. Those that are made in one turn of the event loop, or
 * while others are written, go there together, in the order in which they were made; each is a
 * write of its own, and settles a promise of its own. With `sync` the log is synced once for all
 * that went together.
 */
class WriteQueue {
  #database
  #sync
  #groups = []
  #underWay = null

  constructor(database, sync) {
    this.#database = database
    this.#sync = sync
  }

  /** A promise for the write that `add` adds to the operations that it is given. */
  write(add) {
    let group = this.#groups.at(-1)

    if (group === undefined || group.settlers.length === MOST_OPERATIONS) {
      group = { operations: new binding.Operations(), settlers: [] }
      this.#groups.push(group)
      if (this.#groups.length === 1 && this.#underWay === null) process.nextTick(() => this.#next())
    }

    add(group.operations)
    return new Promise(function (resolve, reject) {
      group.settlers.push({ resolve, reject })
    })
  }

  /** Settles when all writes that were made are done. */
  async drained() {
    this.#next()
    while (this.#underWay !== null) await this.#underWay
  }

  #next() {
    if (this.#underWay !== null || this.#groups.length === 0) return
    this.#underWay = this.#writeGroup(this.#groups.shift())
  }

  async #writeGroup({ operations, settlers }) {
    let failures

    try {
      failures = await this.#database.writeEach(operations, this.#sync)
    } catch (err) {
      // Where the call itself throws: not before `#underWay` is set.
      await undefined
      failures = settlers.map(() => err)
    }

    this.#underWay = null
    this.#next()

    settlers.forEach(function ({ resolve, reject }, index) {
      const failure = failures?.[index]
      if (failure === undefined) resolve()
      else reject(failure)
    })
  }
}

exports.WriteQueue = WriteQueue
