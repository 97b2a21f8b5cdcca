// The image of the job: one that the operator has prepared, or any other.
import { useQuery } from '@tanstack/react-query'
import { infoQuery } from '../../api/queries'
import { imageSet, type JobForm } from '../../editor/job-file'
import { t } from '../../i18n/i18n'
import { SelectField, TextField } from '../../ui/ui'
import type { Editing } from './fields'

export function Image({ form, text, setText }: Editing & { form: JobForm }) {
  const { data: info } = useQuery(infoQuery)
  const image = form.images[0]
  const prepared = info?.images ?? []
  const chosen = prepared.find((one) => one.uri === image?.uri)
  const set = (uri: string) => setText(imageSet(text, image?.name ?? 'image', uri))
  return (
    <>
      {prepared.length > 0 && (
        <div className="field-wide">
          <SelectField label={t('Prepared image')} hint={chosen?.about ? <span lang="">{chosen.about}</span> : undefined} value={chosen?.uri ?? ''} onChange={(event) => event.target.value && set(event.target.value)}>
            <option value="">{t('another, as below')}</option>
            {prepared.map(({ name, uri }) => (
              <option key={name} value={uri} lang="">
                {name}
              </option>
            ))}
          </SelectField>
        </div>
      )}
      <div className="field-wide">
        <TextField label={t('Image')} value={image?.uri ?? ''} onChange={(event) => set(event.target.value)} />
      </div>
    </>
  )
}
