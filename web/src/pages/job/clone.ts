// Where a copy of a job begins: in the plugin that has submitted it, else in the form.
import { useQuery } from '@tanstack/react-query'
import { enc } from '../../api/client'
import { configQuery, pluginsQuery } from '../../api/queries'
import { clonePath, submitFromOf } from '../../lib/plugins'

export function useClonePath(name: string, mayReadFile: boolean): string {
  const { data: plugins } = useQuery(pluginsQuery)
  const { data: config } = useQuery({ ...configQuery(name), enabled: mayReadFile && !!plugins?.some((plugin) => plugin.id) })
  const [user = '', ...job] = name.split('~')
  return clonePath(plugins ?? [], config && submitFromOf(config), user, job.join('~')) ?? `/submit?clone=${enc(name)}`
}
