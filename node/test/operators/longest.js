'use strict'

// A merge operator: the longest of all operands.

exports.name = 'longest'

exports.fullMerge = function (key, existing, operands) {
  const all = existing === undefined ? operands : [existing, ...operands]
  return all.reduce((longest, other) => (other.length > longest.length ? other : longest))
}

exports.partialMerge = function (key, older, newer) {
  return newer.length > older.length ? newer : older
}
