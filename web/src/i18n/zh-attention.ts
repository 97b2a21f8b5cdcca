// Simplified Chinese: alerts, plugins, and copies of templates.
const attention: Record<string, string> = {
  'Alerts': '告警',
  'Ended within a week': '一周内已结束',
  'No alerts': '没有告警',
  'Make a copy of my own': '复制为我的模板',
  'Nothing needs attention': '没有需要关注的事项',
  'Now': '当前',
  'Plugin': '插件',
  'Since': '始于',
  'The script of the plugin could not be loaded: {uri}': '无法加载插件的脚本：{uri}',
  'The script of the plugin defines no element pai-plugin: {uri}': '插件的脚本没有定义元素 pai-plugin：{uri}',
  'There is no such plugin': '没有这样的插件',
  'These are the newest {n}; skep alerts --all shows all.': '此处为最新的 {n} 条；skep alerts --all 显示全部。',
  'new': '新',
  '{n} unseen': '{n} 条未读',
}

export default attention
