// A merge operator: a set of words, from which `-word` takes one, and which goes with its last word.

export const name = 'set'

export function fullMerge(key, existing, operands) {
  const words = new Set(existing?.toString().split(' '))
  for (const operand of operands.map(String)) {
    if (operand.startsWith('-')) words.delete(operand.slice(1))
    else words.add(operand)
  }
  if (words.has('throw')) throw new Error(`no merge of ${key}`)
  if (words.has('number')) return 7
  if (words.has('promise')) return Promise.resolve('later')
  if (words.has('unspeakable')) throw Object.create(null)
  if (words.has('exit')) process.exit()
  return words.size === 0 ? undefined : [...words].sort().join(' ')
}

export function checkOperand(operand) {
  if (operand.length === 0 || operand.includes(' ')) throw new RangeError('an operand is one word')
}
