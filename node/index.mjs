import esker from './index.js'

export const { EskerLevel } = esker
