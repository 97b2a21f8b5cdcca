/** Has the job, or the task, not ended yet? */
export const isLive = (state: string | undefined) => state === 'WAITING' || state === 'RUNNING' || state === 'STOPPING'
