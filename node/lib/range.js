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
