// Simplified Chinese for the form of a new job: a part of zh.ts.
const form: Record<string, string> = {
  'A further public key to let in': '另外允许登录的公钥',
  'Add a folder': '添加文件夹',
  'also from task to task': '任务之间也可使用 ssh',
  'Begin when all tasks answer by ssh': '等所有任务都能通过 ssh 连接后再开始',
  'Folder of the logs': '日志文件夹',
  'It is started in each task, so the image must have it, and shows what the commands write to these folders.': '它在每个任务中启动，因此镜像中须有 TensorBoard；它显示命令写入这些文件夹的内容。',
  'Mounted at': '挂载于',
  'Name of the logs': '日志名称',
  'not offered to you': '未提供给您',
  'Only for the roles {names}': '仅用于角色 {names}',
  'Port of TensorBoard': 'TensorBoard 的端口',
  'read and write': '可读写',
  'Run without ssh where the image has no server': '镜像中没有 ssh 服务器时，不启用 ssh 而继续运行',
  'Run without TensorBoard where the image has none': '镜像中没有 TensorBoard 时，不启动它而继续运行',
  'ssh to the tasks': '通过 ssh 连接任务',
  'The image must have an ssh server. Keys of your profile are let in:': '镜像中须有 ssh 服务器。您个人资料中的密钥可以登录：',
  'The job file has an empty list: it asks for your default storages.': '作业文件中的列表为空：将挂载您的默认存储。',
  'Tools': '工具',
  'Wait for them at most, minutes': '最长等待时间（分钟）',
  'With neither this nor ssh from task to task no ssh server is started.': '如果既没有公钥，也未启用任务之间的 ssh，则不会启动 ssh 服务器。',
  '{name} is mounted at': '{name} 挂载于',
}

export default form
