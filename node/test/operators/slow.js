'use strict'

// A merge operator that takes its time: forever, where an operand says so.

exports.name = 'slow'

exports.fullMerge = function (key, existing, operands) {
  // Until the thread is ended.
  while (operands.some((operand) => operand.toString() === 'forever'));
  return operands.at(-1)
}
