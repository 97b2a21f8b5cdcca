// A job file that another cluster's portal has sent here. Nothing is done with it before somebody has looked at it.
import { useState } from 'react'
import { t } from '../i18n/i18n'
import { draftKeep } from '../lib/draft'
import { carriedDrop, carriedGet } from '../lib/transfer'
import { navigate } from '../router'
import { Button, Cli, Empty, LinkButton, usePageTitle, useToast } from '../ui/ui'

export default function Arrived() {
  const [arrived] = useState(carriedGet)
  const toast = useToast()
  usePageTitle(t('A job from another cluster'))
  const take = () => {
    if (!draftKeep('', arrived?.file ?? '')) {
      toast(t('The browser has no room for the draft. Copy the text, drop it here, and put it into a new job.'), 'error')
      return
    }
    carriedDrop()
    navigate('/submit')
  }
  return (
    <div className="page">
      <h1>{t('A job from another cluster')}</h1>
      {!arrived ? (
        <div className="card">
          <Empty title={t('No job file came with this address')}>
            <LinkButton href="/submit">{t('Begin with an empty form')}</LinkButton>
          </Empty>
        </div>
      ) : (
        <>
          <div className="note" data-kind="wait">
            <strong>{t('Read it before you take it over: what it runs, it runs in your name.')}</strong>
            {arrived.from && (
              <div>
                {t('It says that it comes from:')} <code>{arrived.from}</code>
              </div>
            )}
          </div>
          <pre className="code" tabIndex={0} aria-label={t('Job file')}>
            {arrived.file}
          </pre>
          <div className="row">
            <Button kind="main" onClick={take}>
              {t('Take it over into a new job')}
            </Button>
            <Button
              onClick={() => {
                carriedDrop()
                navigate('/')
              }}
            >
              {t('Drop it')}
            </Button>
          </div>
        </>
      )}
      <Cli command="skep submit FILE" />
    </div>
  )
}
