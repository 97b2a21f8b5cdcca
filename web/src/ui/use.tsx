// What was used over time, of a job or a machine: one chart for each kind of which something is known.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useOverTimeQuery } from '../api/queries'
import type { Schema } from '../api/client'
import { t } from '../i18n/i18n'
import { readAgain, useWhenEnded } from '../lib/changes'
import { bytes } from '../lib/format'
import '../style/use.css'
import { Chart } from './chart'
import { Empty, ErrorNote, Loading, SelectField } from './ui'

type Field = keyof NonNullable<Schema['Use']['use']>

const count = (value: number) => value.toLocaleString(undefined, { maximumFractionDigits: 2 })
const rate = (value: number) => `${bytes(value)}/s`
const watts = (value: number) => `${Math.round(value)} W`

const KINDS: { field: Field; title: () => string; format: (value: number) => string; given?: 'cpu' | 'memory' | 'gpu' }[] = [
  { field: 'gpu', title: () => t('GPUs that were busy'), format: count, given: 'gpu' },
  { field: 'gpuMemory', title: () => t('GPU memory'), format: bytes },
  { field: 'cpu', title: () => t('Processors'), format: count, given: 'cpu' },
  { field: 'memory', title: () => t('Memory'), format: bytes, given: 'memory' },
  { field: 'read', title: () => t('Read from disks'), format: rate },
  { field: 'written', title: () => t('Written to disks'), format: rate },
  { field: 'received', title: () => t('Received from the network'), format: rate },
  { field: 'sent', title: () => t('Sent to the network'), format: rate },
  { field: 'gpuPower', title: () => t('Power of the GPUs'), format: watts },
]

/** `path` of the API, with its own query or none. */
export function UseOverTime({ path, isLive }: { path: string; isLive: boolean }) {
  const [resolution, setResolution] = useState<'whole' | 'recent'>('whole')
  const { data, error } = useQuery(useOverTimeQuery(path, resolution, isLive))
  const queries = useQueryClient()
  useWhenEnded(isLive, () => readAgain(queries, { queryKey: ['use', path] }))
  if (error) return <ErrorNote error={error} />
  if (!data) return <Loading />
  const isMachine = data.taskCount === undefined
  return (
    <>
      <div className="row">
        <SelectField label={t('Time shown')} value={resolution} onChange={(event) => setResolution(event.target.value as 'whole' | 'recent')}>
          <option value="whole">{t('The whole time')}</option>
          <option value="recent">{t('The last half hour')}</option>
        </SelectField>
        {data.taskCount !== undefined && data.pointCount > 0 && (
          <p className="small quiet push">{t('Sum of {known} of {all} tasks', { known: data.sampledTaskCount ?? 0, all: data.taskCount })}</p>
        )}
      </div>
      {data.pointCount === 0 ? (
        <Empty title={t('Nothing is known yet')}>
          <p>{t('What runs is looked at every ten seconds. Of what ran for less nothing is kept.')}</p>
        </Empty>
      ) : (
        <div className="charts">
          {KINDS.map(({ field, title, format, given }) => {
            const series = data.use[field]
            if (!series) return null
            return (
              <Chart
                key={field}
                title={title()}
                points={series.points}
                beginMs={data.beginTime}
                stepMs={data.stepSeconds * 1000}
                mean={series.mean}
                most={series.most}
                given={given && data.given[given] ? data.given[given] : undefined}
                format={format}
              />
            )
          })}
        </div>
      )}
      {isMachine && !data.use.cpu && !data.use.memory && (
        <p className="small quiet">{t('Of its processors and memory nothing is known: a Kubernetes cluster tells them of its nodes where it has metrics-server.')}</p>
      )}
    </>
  )
}
