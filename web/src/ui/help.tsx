import { useQuery } from '@tanstack/react-query'
import { infoQuery } from '../api/queries'
import { t } from '../i18n/i18n'
import { KEYS } from '../lib/keys'
import { Link } from '../router'
import { Button, Dialog } from './ui'

export function Help({ onClose }: { onClose: () => void }) {
  const { data: info } = useQuery(infoQuery)
  return (
    <Dialog title={t('Help and keys')} onClose={onClose}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t('Key')}</th>
            <th scope="col">{t('What it does')}</th>
          </tr>
        </thead>
        <tbody>
          {KEYS.map(([keys, what]) => (
            <tr key={keys}>
              <td className="nowrap">
                {keys.split(' ').map((key) => (
                  <span key={key}>
                    <kbd>{key}</kbd>{' '}
                  </span>
                ))}
              </td>
              <td>{t(what)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="quiet small">{t('At the foot of each page stands the command that does the same. Keys of one letter can be switched off in the menu of your account.')}</p>
      <p className="small">
        <Link href="/design" onClick={onClose}>
          {t('Parts that this portal is made of')}
        </Link>
      </p>
      {(info?.manualUrl || info?.feedbackUrl) && (
        <ul className="row small">
          {info.manualUrl && (
            <li>
              <a href={info.manualUrl} target="_blank" rel="noopener noreferrer">
                {t('Manual')}
              </a>
            </li>
          )}
          {info.feedbackUrl && (
            <li>
              <a href={info.feedbackUrl} target="_blank" rel="noopener noreferrer">
                {t('Say what is wrong')}
              </a>
            </li>
          )}
        </ul>
      )}
      {info?.version && <p className="small quiet">{t('Version {version} of the server', { version: info.version })}</p>}
      <div className="dialog-foot">
        <Button kind="main" onClick={onClose}>
          {t('Close')}
        </Button>
      </div>
    </Dialog>
  )
}
