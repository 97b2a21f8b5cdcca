// Simplified Chinese for the pages of the cluster: a part of zh.ts.
const cluster: Record<string, string> = {
  'All': '全部',
  'CPU load': 'CPU 负载',
  'Cells are chosen when its jobs start: until then its guarantee is somewhere among those that are free.': '单元在其作业启动时才选定：在此之前，其保障资源位于空闲单元之中。',
  'Colours of the map': '地图的颜色',
  'Disk, read / written': '磁盘，读 / 写',
  'Fewer': '收起',
  'Free for you: {guaranteed} with a guarantee; {free} of the whole cluster for opportunistic jobs.': '您可用的空闲资源：有保障的 {guaranteed} 个；整个集群中可供机会型作业使用的 {free} 个。',
  'Map of {type}': '{type} 的地图',
  'Network, in / out': '网络，入 / 出',
  'No node has jobs of {vc}, or is its own': '没有节点运行 {vc} 的作业或专属于它',
  'Nothing waits in {vc}': '{vc} 中没有等待的作业',
  'RAM in use': '已用内存',
  'Show all virtual clusters': '显示所有虚拟集群',
  'The arrow keys go from one to the next, Home and End to the name of the node and to its last one, with Ctrl to the ends of the map. Enter opens the job that holds it, or the node.':
    '方向键逐个移动；Home 和 End 移到节点名称和其最后一个单元，按住 Ctrl 则移到地图的两端。Enter 打开占用它的作业，或打开节点。',
  'There is no virtual cluster {vc}': '没有虚拟集群 {vc}',
  'Virtual clusters: {type}': '虚拟集群：{type}',
  'closed': '已关闭',
  'yours': '您可用',
  '{n} used opportunistically': '机会型使用 {n} 个',
  '{shown} of {n} node has cells of {vc}|{shown} of {n} nodes have cells of {vc}': '{n} 个节点中有 {shown} 个含 {vc} 的单元',
  '{used} of {total} used': '已使用 {used} / {total}',
  '{vc} has no cell of this type now': '{vc} 目前没有此类单元',
}

export default cluster
