// The templates of this browser: begin a job from one, keep this job as one, remove one.
import { useState, type FormEvent } from 'react'
import { t } from '../../i18n/i18n'
import { templateRemove, templateSave, templatesOf } from '../../lib/templates'
import { navigate } from '../../router'
import { Button, Confirm, Dialog, ErrorNote, Menu, TextField, useToast } from '../../ui/ui'

type Asked = { kind: 'save' } | { kind: 'remove'; name: string } | null

export function Templates({ user, text, suggested, canSave }: { user: string; text: string; suggested: string; canSave: boolean }) {
  const [templates, setTemplates] = useState(() => templatesOf(user))
  const [asked, ask] = useState<Asked>(null)
  const [error, setError] = useState<unknown>(null)
  const toast = useToast()
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const name = String(new FormData(event.currentTarget).get('template')).trim()
    try {
      setTemplates(templateSave(user, { name, text }))
      toast(t('{name} is a template now.', { name }))
      ask(null)
    } catch (failure) {
      setError(failure)
    }
  }
  return (
    <>
      <Menu label={t('Templates')} start>
        {(close) => (
          <>
            {templates.length === 0 && <p className="label">{t('None yet. Keep this job as one, and begin others from it.')}</p>}
            {templates.map(({ name }) => (
              <div key={name} className="row template">
                <Button
                  className="button grow"
                  onClick={() => {
                    close()
                    navigate(`/submit?template=${encodeURIComponent(name)}`)
                  }}
                >
                  {name}
                </Button>
                <Button
                  aria-label={t('Remove the template {name}', { name })}
                  onClick={() => {
                    close()
                    ask({ kind: 'remove', name })
                  }}
                >
                  ✕
                </Button>
              </div>
            ))}
            <Button
              disabled={!canSave}
              onClick={() => {
                close()
                setError(null)
                ask({ kind: 'save' })
              }}
            >
              {t('Keep this job as a template …')}
            </Button>
          </>
        )}
      </Menu>
      {asked?.kind === 'save' && (
        <Dialog title={t('Keep this job as a template')} onClose={() => ask(null)}>
          <form className="stack" onSubmit={save}>
            {error !== null && <ErrorNote error={error} />}
            <p className="quiet">{t('This browser keeps it. The values of secrets are left out. What changes from run to run is best a parameter: it is asked for first.')}</p>
            <TextField label={t('Name of the template')} name="template" required maxLength={64} defaultValue={suggested} hint={t('One of this name is replaced.')} />
            <div className="dialog-foot">
              <Button onClick={() => ask(null)}>{t('Cancel')}</Button>
              <Button type="submit" kind="main">
                {t('Keep')}
              </Button>
            </div>
          </form>
        </Dialog>
      )}
      {asked?.kind === 'remove' && (
        <Confirm
          title={t('Remove the template {name}', { name: asked.name })}
          action={t('Remove')}
          danger
          onClose={() => ask(null)}
          onConfirm={async () => setTemplates(templateRemove(user, asked.name))}
        >
          <p>{t('Jobs that were made from it stay.')}</p>
        </Confirm>
      )}
    </>
  )
}
