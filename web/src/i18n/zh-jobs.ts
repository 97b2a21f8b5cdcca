// The list of jobs, in Simplified Chinese.
const jobs: Record<string, string> = {
  'All columns have the width that they had at first.': '所有列已恢复最初的宽度。',
  'Drag to make the column wider or narrower; a double click sets it back': '拖动可调整列宽；双击可恢复',
  'How files get to {name}': '如何将文件放到 {name}',
  Manual: '手册',
  'Make a key for this job …': '为此作业生成密钥……',
  'My running jobs': '我正在运行的作业',
  'On the title of a column: narrower or wider': '在列标题上：变窄或变宽',
  'Say what is wrong': '反馈问题',
  'Set all widths back': '恢复所有列宽',
  'Free in a virtual cluster is what none of its jobs holds; opportunistic jobs are ended for it. Try says where this job would start.':
    '虚拟集群中空闲的是其作业未占用的部分；为此会结束机会性作业。“试运行”会告诉您此作业将在哪里启动。',
  'The same on Windows, in PowerShell': '在 Windows 的 PowerShell 中同样操作',
  'What the cluster has, and what of it is free': '集群有什么，其中有多少空闲',
  'in all virtual clusters: {free}': '所有虚拟集群：{free}',
  'in {vc}: {free}': '{vc}：{free}',
  '{free} of {total} free': '{total} 个中有 {free} 个空闲',
  filtered: '已筛选',
  '{column}: narrower': '{column}：变窄',
  '@Me': '@我',
  'Exit type': '退出类型',
  Filters: '过滤',
  'Find in the list': '在列表中查找',
  'There are more: name a part of it.': '还有更多：请输入其中一部分。',
  'There are none.': '没有。',
  '{n} of {m} tasks': '{m} 个任务中的 {n} 个',
  '{column}: wider': '{column}：变宽',
  '{column}: {n} pixel wide|{column}: {n} pixels wide': '{column}：宽 {n} 像素',
}

export default jobs
