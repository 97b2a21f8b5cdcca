// The changes of a job of which its user can be told, to choose from.
import { NOTICE_KINDS, type NoticeKind } from '../editor/job-extras'
import { noticeText } from '../lib/notices'
import { Check } from './ui'

interface Props {
  asked: readonly NoticeKind[]
  onChange: (asked: NoticeKind[]) => void
}

export function NoticeKinds({ asked, onChange }: Props) {
  return NOTICE_KINDS.map((kind) => (
    <Check key={kind} checked={asked.includes(kind)} onChange={(event) => onChange(event.target.checked ? [...asked, kind] : asked.filter((other) => other !== kind))}>
      {noticeText(kind)}
    </Check>
  ))
}
