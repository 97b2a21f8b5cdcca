// Logs of attempts: docs/user/api.md.
import { t } from '../i18n/i18n'
import { downloadBegin } from '../lib/download'
import { ApiError, get, type Schema } from './client'

/** `url`: of a log, as …/logs/STREAM. The address that the server gives for it needs no token, is good for this log alone, and for ten minutes. */
export async function logDownload(url: string, name: string) {
  const end = url.lastIndexOf('/')
  const { locations } = await get<Schema['LogLocations']>(url.slice(0, end))
  const uri = locations?.find((one) => one.name === url.slice(end + 1))?.uri
  if (!uri) throw new ApiError(404, 'NoTaskLogError', t('The server gives no address for this log.'))
  downloadBegin(uri, name)
}
