// Begin a job from one of one's own templates, and keep this job as one.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { templatesQuery } from '../../api/templates'
import { t } from '../../i18n/i18n'
import { Link, navigate } from '../../router'
import { Button, Menu } from '../../ui/ui'
import { TemplateDialog } from '../templates/dialog'

export function Templates({ user, text, suggested, canSave, isAsked }: { user: string; text: string; suggested: string; canSave: boolean; isAsked: boolean }) {
  const { data: mine } = useQuery(templatesQuery(`author=${encodeURIComponent(user)}`))
  const [isSaving, setSaving] = useState(isAsked && canSave)
  return (
    <>
      <Menu label={t('Templates')} start>
        {(close) => (
          <>
            {mine?.length === 0 && <p className="label">{t('You have none yet. Keep this job as one, and begin others from it.')}</p>}
            {mine?.slice(0, 12).map(({ id, name }) => (
              <Button
                key={id}
                className="button grow"
                lang=""
                onClick={() => {
                  close()
                  navigate(`/submit?template=${id}`)
                }}
              >
                {name}
              </Button>
            ))}
            <Link className="button" href="/submit?begin=notebook" onClick={close}>
              {t('A notebook (Jupyter)')}
            </Link>
            <Link className="button" href="/templates" onClick={close}>
              {t('All templates')}
            </Link>
            <Button
              disabled={!canSave}
              onClick={() => {
                close()
                setSaving(true)
              }}
            >
              {t('Keep this job as a template …')}
            </Button>
          </>
        )}
      </Menu>
      {isSaving && <TemplateDialog template={null} text={text} suggested={suggested} onClose={() => setSaving(false)} />}
    </>
  )
}
