// What stands behind a port of a task, by its label.

/** The label of the port at which the plugin of this name listens. */
export const TENSORBOARD = 'tensorboard'
/** The label of the port of a notebook that was begun by the portal. */
export const JUPYTER = 'jupyter'

const NAMES = new Map([
  [TENSORBOARD, 'TensorBoard'],
  [JUPYTER, 'Jupyter'],
])

export const portName = (label: string) => NAMES.get(label.toLowerCase()) ?? label
/** Does a program for people listen there, as far as the label tells? */
export const isNamed = (label: string) => NAMES.has(label.toLowerCase())
