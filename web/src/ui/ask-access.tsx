// A virtual cluster that the person may not use: a button that asks administrators for it, or that this has been asked.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { createPortal } from 'react-dom'
import { sessionGet } from '../api/client'
import { userQuery } from '../api/queries'
import { clusterAsk, requestsOf } from '../api/requests'
import { t } from '../i18n/i18n'
import { mayAsk, openFor } from '../lib/requests'
import { Link } from '../router'
import { Ago, Button, Cli, Confirm, TextField, useToast } from './ui'

function AskDialog({ vc, onClose }: { vc: string; onClose: () => void }) {
  const [reason, setReason] = useState('')
  const queries = useQueryClient()
  const toast = useToast()
  const confirm = async () => {
    await clusterAsk(vc, reason.trim())
    await queries.invalidateQueries({ queryKey: ['requests'] })
    toast(t('You have asked for {name}.', { name: vc }))
  }
  return (
    <Confirm title={t('Ask for access to {name}', { name: vc })} action={t('Ask for it')} onClose={onClose} onConfirm={confirm}>
      <p>{t('Administrators see the request, and accept or refuse it. Their answer stands in your profile.')}</p>
      <TextField label={t('Why you need it')} maxLength={300} value={reason} autoFocus onChange={(event) => setReason(event.target.value)} />
      <Cli command={`skep request ask ${vc}`} />
    </Confirm>
  )
}

export function AskAccess({ vc }: { vc: string }) {
  const me = sessionGet()
  const isUser = !!me && !me.admin
  const { data: user } = useQuery({ ...userQuery(me?.user ?? ''), enabled: isUser })
  const { data: requests } = useQuery({ ...requestsOf(me?.user ?? ''), enabled: isUser })
  const [isAsking, setAsking] = useState(false)
  if (!requests || !mayAsk(user?.virtualCluster, me?.admin ?? false, vc)) return null
  const open = openFor(requests.data, vc)
  return open ? (
    <p className="small quiet">
      {t('You have asked for access:')} <Ago ms={open.askedTime} />. <Link href="/profile">{t('Your requests')}</Link>
    </p>
  ) : (
    <div>
      <Button small aria-label={t('Ask for access to {name}', { name: vc })} onClick={() => setAsking(true)}>
        {t('Ask for access …')}
      </Button>
      {/* not within the form of a new job: there are no forms in forms */}
      {isAsking && createPortal(<AskDialog vc={vc} onClose={() => setAsking(false)} />, document.body)}
    </div>
  )
}
