// The parts that the portal is made of: what one may use on a new page, and where it is seen at once in every theme.
import { t } from '../i18n/i18n'
import { Button, Check, Cli, Empty, Meter, SelectField, StateBadge, STATES, TextField, usePageTitle } from '../ui/ui'
import '../style/design.css'

const COLOURS = ['--ground', '--surface', '--sunken', '--line', '--line-strong', '--text', '--text-quiet', '--accent', '--focus', '--selected', '--waiting', '--running', '--stopping', '--succeeded', '--failed', '--stopped', '--cell-free', '--cell-1', '--cell-2', '--cell-3', '--cell-4', '--cell-5', '--cell-6', '--cell-7', '--cell-8', '--cell-bad']

export default function Design() {
  usePageTitle(t('Design'))
  return (
    <div className="page">
      <h1>{t('Parts that this portal is made of')}</h1>
      <section className="card" aria-label={t('Colours')}>
        <h2>{t('Colours')}</h2>
        <ul className="swatches">
          {COLOURS.map((name) => (
            <li key={name}>
              <span className="swatch" style={{ background: `var(${name})` }} aria-hidden="true" />
              <code className="small">{name.slice(2)}</code>
            </li>
          ))}
        </ul>
      </section>
      <section className="card" aria-label={t('States')}>
        <h2>{t('States')}</h2>
        <div className="row">
          {STATES.map((state) => (
            <StateBadge key={state} state={state} />
          ))}
        </div>
      </section>
      <section className="card" aria-label={t('Controls')}>
        <h2>{t('Controls')}</h2>
        <div className="row">
          <Button kind="main">{t('Main')}</Button>
          <Button>{t('Usual')}</Button>
          <Button kind="danger">{t('Destroys')}</Button>
          <Button kind="plain">{t('Plain')}</Button>
          <Button disabled>{t('Not now')}</Button>
          <Button aria-pressed>{t('Chosen')}</Button>
        </div>
        <div className="fields">
          <TextField label={t('A field')} hint={t('What it is for.')} />
          <TextField label={t('A field with an error')} error={t('What is wrong, and what would be right.')} defaultValue="?" />
          <SelectField label={t('A choice')}>
            <option>{t('default')}</option>
          </SelectField>
        </div>
        <Check>{t('A switch')}</Check>
        <Meter label={t('GPUs')} used={5} bad={1} total={8} />
      </section>
      <section className="card" aria-label={t('Notes')}>
        <h2>{t('Notes')}</h2>
        <p className="note">{t('A note')}</p>
        <p className="note" data-kind="wait">
          {t('A reason to wait')}
        </p>
        <p className="note" data-kind="error">
          {t('An error')}
        </p>
        <Empty title={t('Nothing is here yet')}>
          <p>{t('What to do next.')}</p>
        </Empty>
      </section>
      <Cli command="skep help" />
    </div>
  )
}
