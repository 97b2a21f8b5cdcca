// What stands behind a port of a task, by its label.

/** The label of the port at which the plugin of this name listens. */
export const TENSORBOARD = 'tensorboard'

export const portName = (label: string) => (label.toLowerCase() === TENSORBOARD ? 'TensorBoard' : label)
