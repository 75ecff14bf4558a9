'use strict'

exports.name = 'wrong'
