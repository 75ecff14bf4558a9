'use strict'

const { isNativeError } = require('node:util').types
const binding = require('./binding')

// Reads of one call to the pool: many enough that the way there costs little for each, and few
// enough that several threads get some.
const MANY_READS = 25

/**
 * The reads of a database on their way to the pool. The first one of a turn of the event loop goes
 * there by itself, so that one at a time waits for nothing. Those that the turn makes behind it go
 * together: each settles a promise of its own, with less work on the event loop.
 */
class ReadQueue {
  #database
  #isGathering = false
  #reads = null
  #settlers = []

  constructor(database) {
    this.#database = database
  }

  /** A promise for a read, which `alone` makes, or `add` adds to the reads it is given. */
  read(alone, add) {
    if (!this.#isGathering) {
      this.#isGathering = true
      queueMicrotask(() => {
        this.#isGathering = false
        this.send()
      })
      return alone()
    }

    this.#reads ??= new binding.Reads()
    add(this.#reads)
    const settlers = this.#settlers
    const promise = new Promise((resolve, reject) => settlers.push({ resolve, reject }))
    if (settlers.length === MANY_READS) this.send()
    return promise
  }

  /** Sends what was gathered. */
  send() {
    if (this.#reads === null) return
    const [reads, settlers] = [this.#reads, this.#settlers]
    this.#reads = null
    this.#settlers = []
    this.#readAll(reads, settlers)
  }

  async #readAll(reads, settlers) {
    let answers

    try {
      answers = await this.#database.readAll(reads)
    } catch (err) {
      for (const settler of settlers) settler.reject(err)
      return
    }

    settlers.forEach((settler, index) => {
      const answer = answers[index]
      // No value is an error.
      if (isNativeError(answer)) settler.reject(answer)
      else settler.resolve(answer)
    })
  }
}

exports.ReadQueue = ReadQueue
