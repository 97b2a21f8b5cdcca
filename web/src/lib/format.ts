// Times, durations and sizes as people read them.
import { t } from '../i18n/i18n'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export function duration(ms: number): string {
  if (ms < 0) ms = 0
  const whole = (unit: number) => Math.floor(ms / unit)
  const rest = (unit: number, of: number) => Math.floor((ms % of) / unit)
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} ${t('s')}`
  if (ms < MINUTE) return `${whole(1000)} ${t('s')}`
  if (ms < HOUR) return `${whole(MINUTE)} ${t('min')} ${rest(1000, MINUTE)} ${t('s')}`
  if (ms < DAY) return `${whole(HOUR)} ${t('h')} ${rest(MINUTE, HOUR)} ${t('min')}`
  return `${whole(DAY)} ${t('d')} ${rest(HOUR, DAY)} ${t('h')}`
}

export function ago(ms: number, now: number, language: string): string {
  const past = Math.max(0, now - ms)
  const format = new Intl.RelativeTimeFormat(language, { style: 'narrow', numeric: 'auto' })
  if (past < MINUTE) return format.format(-Math.floor(past / 1000), 'second')
  if (past < HOUR) return format.format(-Math.floor(past / MINUTE), 'minute')
  if (past < DAY) return format.format(-Math.floor(past / HOUR), 'hour')
  return format.format(-Math.floor(past / DAY), 'day')
}

export function clock(ms: number, language: string): string {
  return new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' }).format(ms)
}

export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let unit = 0
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024
    unit++
  }
  return `${unit && count < 100 ? count.toFixed(1) : Math.round(count)} ${units[unit]}`
}

export const mebibytes = (count: number) => bytes(count * 1024 * 1024)
