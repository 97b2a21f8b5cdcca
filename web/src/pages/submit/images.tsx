// The images of the job: each is one that the operator has prepared, or any other. Most jobs have one.
import { useQuery } from '@tanstack/react-query'
import { infoQuery } from '../../api/queries'
import { imageRemove, imageSet, type JobForm } from '../../editor/job-file'
import { t } from '../../i18n/i18n'
import { Button, SelectField, TextField } from '../../ui/ui'
import type { Editing } from './fields'

export function Images({ form, text, setText }: Editing & { form: JobForm }) {
  const { data: info } = useQuery(infoQuery)
  const prepared = info?.images ?? []
  const images = form.images.length ? form.images : [{ name: 'image', uri: '' }]
  return images.map(({ name, uri }) => {
    const label = (title: string) => (images.length > 1 ? `${title} · ${name}` : title)
    const set = (next: string) => setText(imageSet(text, name, next))
    const chosen = prepared.find((one) => one.uri === uri)
    const isUnused = images.length > 1 && !form.roles.some((role) => role.image === name)
    return (
      <div className="field-wide stack" key={name}>
        {prepared.length > 0 && (
          <SelectField label={label(t('Prepared image'))} hint={chosen?.about ? <span lang="">{chosen.about}</span> : undefined} value={chosen?.uri ?? ''} onChange={(event) => event.target.value && set(event.target.value)}>
            <option value="">{t('another, as below')}</option>
            {prepared.map((one) => (
              <option key={one.name} value={one.uri} lang="">
                {one.name}
              </option>
            ))}
          </SelectField>
        )}
        <TextField label={label(t('Image'))} value={uri} onChange={(event) => set(event.target.value)} />
        {isUnused && (
          <div className="row small quiet">
            {t('No role uses it.')}
            <Button small onClick={() => setText(imageRemove(text, name))}>
              {t('Remove {name}', { name })}
            </Button>
          </div>
        )}
      </div>
    )
  })
}
