import type { Storage } from '../api/queries'

/** Where it is for people who reach it from elsewhere; "": nobody has said. */
export const storageWhere = ({ data }: Storage) => [data?.server ?? data?.address, data?.path].filter(Boolean).join(':')
