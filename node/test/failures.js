'use strict'

/** What a promise is rejected with; nothing if it is not. */
const failure = async function (promise) {
  try {
    await promise
  } catch (err) {
    return err
  }
}

/** The code of that. */
const codeOf = async (promise) => (await failure(promise))?.code

module.exports = { failure, codeOf }
