'use strict'

const { encoded } = require('./encoded')

const LOWER_EXCLUSIVE = 1
const UPPER_EXCLUSIVE = 2
const REVERSE = 4

exports.KEYS = 8
exports.VALUES = 16

/** The bounds and flags of range options, of which `gte` and `lte` come before `gt` and `lt`. */
exports.rangeOf = function (options) {
  let lower, upper
  let flags = options.reverse ? REVERSE : 0

  if (options.gte !== undefined) {
    lower = encoded(options.gte)
  } else if (options.gt !== undefined) {
    lower = encoded(options.gt)
    flags |= LOWER_EXCLUSIVE
  }

  if (options.lte !== undefined) {
    upper = encoded(options.lte)
  } else if (options.lt !== undefined) {
    upper = encoded(options.lt)
    flags |= UPPER_EXCLUSIVE
  }

  return { lower, upper, flags }
}

/** The same of options whose keys are not encoded yet. */
exports.encodedRange = function (options, encoding) {
  const range = { reverse: options.reverse }
  for (const name of ['gt', 'gte', 'lt', 'lte'])
    if (options[name] !== undefined) range[name] = encoding.encode(options[name])
  return exports.rangeOf(range)
}

/** The part of a range behind a key, in its order. */
exports.rangeBehind = function ({ lower, upper, flags }, key) {
  return flags & REVERSE
    ? { lower, upper: key, flags: flags | UPPER_EXCLUSIVE }
    : { lower: key, upper, flags: flags | LOWER_EXCLUSIVE }
}

/** The most entries of a range, as `abstract-level` takes it. */
exports.limitOf = function (options) {
  const limit = options?.limit
  return Number.isInteger(limit) && limit >= 0 ? limit : Infinity
}
